import type { ButtonHTMLAttributes, ReactNode } from 'react'

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: 'primary' | 'plain' | 'ghost' | 'danger'
  small?: boolean
  busy?: boolean
}

export function Button({ kind = 'plain', small = false, busy = false, className = '', children, disabled, ...rest }: Props) {
  return (
    <button type="button" className={`btn btn-${kind} ${small ? 'btn-small' : ''} ${className}`} disabled={disabled || busy} aria-busy={busy || undefined} {...rest}>
      {busy && <Spinner />}
      {children}
    </button>
  )
}

interface IconProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  label: string
  children: ReactNode
}

export function IconButton({ label, className = '', children, ...rest }: IconProps) {
  return (
    <button type="button" className={`icon-btn ${className}`} aria-label={label} title={label} {...rest}>
      {children}
    </button>
  )
}

export function Spinner() {
  return <span className="spinner" aria-hidden="true" />
}
