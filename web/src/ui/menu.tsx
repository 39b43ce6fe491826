import { DropdownMenu } from 'radix-ui'
import type { ReactNode } from 'react'

export interface MenuItem {
  label: string
  icon?: ReactNode
  danger?: boolean
  onSelect: () => void
}

/** A button with a menu. */
export function Menu({ trigger, items }: { trigger: ReactNode; items: (MenuItem | 'line')[] }) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className="menu" align="end" sideOffset={4} collisionPadding={8}>
          {items.map((item, i) =>
            item === 'line' ? (
              <DropdownMenu.Separator key={i} className="menu-line" />
            ) : (
              <DropdownMenu.Item key={item.label} className={`menu-item ${item.danger ? 'menu-danger' : ''}`} onSelect={item.onSelect}>
                {item.icon}
                {item.label}
              </DropdownMenu.Item>
            ),
          )}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}
