import { ShieldQuestion } from 'lucide-react'
import { useState, type KeyboardEvent } from 'react'
import type { Permission, PermissionOption, Tool } from '../api/types'
import { visible, visibleLine } from '../lib/visible'
import { hostName } from '../lib/words'
import { Button } from '../ui/button'
import { ErrorNotice } from '../ui/notice'
import { answer } from './actions'
import { Powers } from './powers'

const order: PermissionOption['kind'][] = ['reject_always', 'reject_once', 'allow_once', 'allow_always']
const keys: Record<PermissionOption['kind'], string> = { reject_once: 'D', allow_once: 'O', allow_always: 'A', reject_always: 'N' }

/**
 * A question before something is allowed. It never takes the focus: F6 goes there, and
 * only then its keys work. Everything is shown, what is invisible included.
 */
export function PermissionCard({ session, permission, tool }: { session: string; permission: Permission; tool?: Tool }) {
  const [sent, setSent] = useState<string>()
  const [error, setError] = useState<unknown>()
  const hosts = permission.hosts ?? []
  const options = (permission.options ?? []).slice().sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))
  const lasting = options.find((o) => o.kind === 'allow_always')
  const choose = async (option: string) => {
    if (sent !== undefined) return
    setSent(option)
    setError(undefined)
    try {
      await answer(session, permission.id, option)
    } catch (e) {
      setError(e)
      setSent(undefined)
    }
  }
  const key = (e: KeyboardEvent<HTMLElement>) => {
    if (e.target !== e.currentTarget || e.ctrlKey || e.metaKey || e.altKey || e.nativeEvent.isComposing) return
    const option = options.find((o) => keys[o.kind] === e.key.toUpperCase())
    if (!option) return
    e.preventDefault()
    void choose(option.id)
  }
  return (
    <section className="permission" tabIndex={-1} data-permission="" role="group" aria-label={`Permission: ${visibleLine(permission.title)}`} onKeyDown={key}>
      <h3 className="permission-title">
        <ShieldQuestion size={18} aria-hidden="true" className="flex-none text-wait" />
        <span>{visibleLine(permission.title)}</span>
      </h3>
      <div className="permission-text" tabIndex={0} role="region" aria-label="Details">
        {hosts.length > 0 && (
          <dl>
            <dt>New</dt>
            <dd>
              {hosts.map((h) => (
                <code key={h} className="permission-host">{visibleLine(hostName(h))}</code>
              ))}
            </dd>
          </dl>
        )}
        <Details permission={permission} />
        <Powers permission={permission} tool={tool} />
        {lasting && (
          <p className="help">
            “{visibleLine(lasting.name)}” is kept: {permission.capability ? <code>{visibleLine(permission.capability)}</code> : 'this workspace'} may then reach{' '}
            {reached(hosts)} in later sessions and versions, too.
          </p>
        )}
      </div>
      {error !== undefined && <ErrorNotice error={error} />}
      <div className="permission-buttons">
        {options.map((o) => (
          <Button key={o.id} busy={sent === o.id} disabled={sent !== undefined} onClick={() => void choose(o.id)}>
            {visibleLine(o.name)} <span className="key">{keys[o.kind]}</span>
          </Button>
        ))}
        <span className="help permission-hint ml-auto"><span className="key">F6</span> to answer by key</span>
      </div>
    </section>
  )
}

const reached = (hosts: string[]) => (hosts.includes('*') ? 'every public host' : hosts.length === 1 ? 'this host' : hosts.length > 1 ? 'these hosts' : 'this')

/** What the text says besides the title and the grants, which stand apart. */
function Details({ permission }: { permission: Permission }) {
  const text = permission.text.startsWith(permission.title) ? permission.text.slice(permission.title.length) : permission.text
  const shown = visible(text.replace(/\n\nAll that it may do then: [^\n]*$/, '').trim())
  return shown ? <p className="whitespace-pre-wrap">{shown}</p> : null
}

/** Moves the focus to the first question; false when there is none. */
export function focusPermission(): boolean {
  const card = document.querySelector<HTMLElement>('[data-permission]')
  card?.focus()
  return card !== null
}
