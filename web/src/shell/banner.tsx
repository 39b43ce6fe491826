import { CircleAlert, RotateCw, Unplug } from 'lucide-react'
import { useState } from 'react'
import { request } from '../api/client'
import { sentence } from '../lib/words'
import type { Agent } from '../api/types'
import { useNow } from '../lib/hooks'
import { seconds } from '../lib/format'
import { visible } from '../lib/visible'
import { useStore } from '../state/store'
import { Button, Spinner } from '../ui/button'
import { CopyButton } from '../ui/copy'

const patience = 2000 // ms that a connection may be lost before it is worth a banner

/** What concerns the whole app: the connection, and an agent that has crashed. */
export function Banner() {
  const lost = useStore((s) => s.connection === 'lost')
  const since = useStore((s) => s.since)
  const agent = useStore((s) => s.agent)
  const now = useNow(lost)
  if (lost) {
    if (now - since < patience) return null
    return (
      <div className="banner banner-wait" role="alert">
        <Unplug size={16} aria-hidden="true" />
        <p>
          <strong>Tendril does not answer.</strong> Trying again since {seconds(now - since)}. If it was closed, run <code>tendril</code>; what you typed is kept.
        </p>
      </div>
    )
  }
  if (agent?.status === 'failed') return <Crash agent={agent} />
  if (agent?.status === 'restarting') {
    return (
      <div className="banner banner-wait" role="alert">
        <Spinner />
        <p>
          <strong>The agent ended unexpectedly and is started again.</strong> {agent.error && sentence(visible(agent.error))}
        </p>
      </div>
    )
  }
  return null
}

function Crash({ agent }: { agent: Agent }) {
  const [open, setOpen] = useState(true)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const lines = agent.stderr ?? []
  const stderr = visible(lines.join('\n'))
  const restart = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await request('POST', '/agent/restart')
    } catch (e) {
      setError(e)
    }
    setBusy(false)
  }
  return (
    <div className="banner banner-fail" role="alert">
      <CircleAlert size={16} aria-hidden="true" />
      <div className="min-w-0 flex-1">
        <p>
          <strong>The agent has stopped.</strong> {agent.error ? sentence(visible(agent.error)) : 'It ended unexpectedly.'} Your sessions are safe.
          {lines.length > 0 && (
            <button type="button" className="link-btn ml-2 text-text" aria-expanded={open} onClick={() => setOpen(!open)}>
              {open ? 'Hide what it printed' : 'What it printed last'}
            </button>
          )}
        </p>
        {open && lines.length > 0 && (
          <div className="banner-stderr">
            <pre tabIndex={0} aria-label="What the agent printed last">{stderr}</pre>
            <CopyButton text={lines.join('\n')} />
          </div>
        )}
        {error !== undefined && <p className="text-fail">{sentence(error)}</p>}
      </div>
      <Button small busy={busy} onClick={() => void restart()}>
        <RotateCw size={14} aria-hidden="true" /> Restart
      </Button>
    </div>
  )
}
