import { useNow } from '../lib/hooks'
import { useStore } from '../state/store'
import { Spinner } from '../ui/button'
import { Mark } from '../ui/mark'

/** Until the host's first snapshot. Shows nothing for an instant, so that a quick start does not flicker. */
export function Starting() {
  const since = useStore((s) => s.since)
  const lost = useStore((s) => s.connection === 'lost')
  const waited = useNow(true) - since
  return (
    <main className={`centred items-center text-center ${waited < 600 && !lost ? 'opacity-0' : ''}`} aria-busy="true">
      <span className="text-accent">
        <Mark size={32} />
      </span>
      <p className="flex items-center gap-2 text-text2" role="status">
        <Spinner /> {lost ? 'Tendril does not answer. Trying again…' : 'Connecting to Tendril…'}
      </p>
      {lost && (
        <p className="text-meta text-text3">
          If it was closed, run <code>tendril</code> again; this window then goes on by itself.
        </p>
      )}
    </main>
  )
}
