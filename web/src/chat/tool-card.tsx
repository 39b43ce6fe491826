import { Ban, Check, ChevronRight, Clock, Hand, Unplug, X } from 'lucide-react'
import { memo, type ReactNode } from 'react'
import type { Stop, Tool } from '../api/types'
import { duration, seconds } from '../lib/format'
import { useNow } from '../lib/hooks'
import { visibleLine } from '../lib/visible'
import { useFold } from '../state/folds'
import { useStore } from '../state/store'
import { Spinner } from '../ui/button'
import { describe, kind, phase, reach, type Phase } from './describe'
import { ToolBody } from './tool-body'

interface Props {
  session: string
  tool: Tool
  end?: Stop // how the turn ended
  attempt?: number
}

/** A tool call: its story in one row, and all of it when it is opened. */
export const ToolCard = memo(function ToolCard({ session, tool, end, attempt }: Props) {
  const now = phase(tool, end)
  const [open, toggle] = useFold(`${session}/${tool.id}`, opensByItself(tool, now, end))
  const line = describe(tool, now)
  const built = kind(tool) === 'register' && now === 'done'
  return (
    <section className={`tool tool-${now} ${built ? 'tool-built' : ''}`} data-anchor="" aria-label={`${line.verb} ${line.name}`}>
      <button type="button" className="tool-row" aria-expanded={open} onClick={toggle}>
        <PhaseIcon phase={now} />
        <span className="tool-verb">{line.verb}</span>
        {line.name && <code className="tool-name">{line.name}</code>}
        {line.rest && <span className="tool-rest">{line.rest}</span>}
        {attempt !== undefined && attempt > 1 && <span className="tool-attempt">attempt {attempt}</span>}
        {line.argument && <span className="tool-argument">{line.argument}</span>}
        {line.summary && <span className={`tool-summary ${now === 'failed' ? 'text-fail' : ''}`}>{line.summary}</span>}
        <Time tool={tool} running={now === 'running' || now === 'waiting'} />
        <ChevronRight size={14} className="tool-chevron" aria-hidden="true" />
      </button>
      {built && !open && <Reach tool={tool} />}
      {open && <ToolBody tool={tool} phase={now} />}
    </section>
  )
})

/** What of the network was granted to a capability: in sight without opening anything. */
export function Reach({ tool }: { tool: Tool }) {
  const told = reach(tool)
  return told ? <p className="tool-reach"><code>{visibleLine(tool.name ?? '')}</code> {told}</p> : null
}

/** The ticking gate is shown while it runs. What failed is open until the turn has come to a good end in spite of it. */
function opensByItself(tool: Tool, now: Phase, end?: Stop): boolean {
  if (now === 'failed') return end !== 'end_turn'
  return kind(tool) === 'register' && (now === 'running' || now === 'waiting')
}

const icons: Record<Exclude<Phase, 'running'>, ReactNode> = {
  queued: <Clock size={14} />,
  waiting: <Hand size={14} />,
  done: <Check size={14} />,
  failed: <X size={14} />,
  skipped: <Ban size={14} />,
  stopped: <Ban size={14} />,
  interrupted: <Unplug size={14} />,
}

export function PhaseIcon({ phase }: { phase: Phase }) {
  return (
    <span className={`phase phase-${phase}`} aria-hidden="true">
      {phase === 'running' ? <Spinner /> : icons[phase]}
    </span>
  )
}

function Time({ tool, running }: { tool: Tool; running: boolean }) {
  const connected = useStore((s) => s.connection === 'open')
  const now = useNow(running && connected)
  const ms = running && tool.started ? now - new Date(tool.started).getTime() : tool.durationMs
  if (ms === undefined) return null
  return <span className="tool-time">{running ? seconds(ms) : duration(ms)}</span>
}
