import { ChevronRight, Info } from 'lucide-react'
import { memo, useState } from 'react'
import type { Item, SessionState, Stop, Turn } from '../api/types'
import { cost, count, duration, plural, seconds } from '../lib/format'
import { useNow } from '../lib/hooks'
import { visible, visibleLine } from '../lib/visible'
import { Markdown } from '../markdown/markdown'
import { useAnyOpened, useFold } from '../state/folds'
import { useStore } from '../state/store'
import { Spinner } from '../ui/button'
import { CopyButton } from '../ui/copy'
import { checks, describe } from './describe'
import { EndingCard } from './ending-card'
import { PhaseIcon, Reach, ToolCard } from './tool-card'
import { entries, same, type TurnView } from './turns'

interface Props {
  session: string
  turn: TurnView
  running?: SessionState // the session, while this turn runs
  stale: boolean // nothing runs in the session: what is not over was cut off
  onSendAgain?: (text: string) => void
}

/** One turn: the prompt, what was done, how it ended. */
export const TurnSection = memo(function TurnSection({ session, turn, running, stale, onSendAgain }: Props) {
  const list = entries(turn)
  const last = list[list.length - 1]
  const over = turn.end !== undefined
  const stop = turn.end?.stop ?? (stale ? 'interrupted' : undefined)
  return (
    <section className="turn" data-turn="">
      {turn.user && <UserMessage text={turn.user.text ?? ''} />}
      {list.map((entry) =>
        'folded' in entry ? (
          <FoldedTools key={`f${entry.key}`} session={session} entries={entry.folded} />
        ) : (
          <Entry key={entry.key} session={session} id={entry.key} item={entry.item} attempt={entry.attempt} stop={stop} live={running !== undefined && entry === last} />
        ),
      )}
      {running && <Waiting key={waitingFor(running, last)} session={running} what={waitingFor(running, last)} />}
      {over && <TurnEnd turn={turn} onSendAgain={onSendAgain} />}
    </section>
  )
}, (a, b) => a.session === b.session && a.running === b.running && a.stale === b.stale && a.onSendAgain === b.onSendAgain && same(a.turn, b.turn))

interface EntryProps {
  session: string
  id: number
  item: Item
  attempt?: number
  stop?: Stop
  live: boolean
}

const Entry = memo(function Entry({ session, id, item, attempt, stop, live }: EntryProps) {
  switch (item.type) {
    case 'agent':
      return item.text?.trim() ? (
        <div data-anchor="">
          <Markdown text={item.text} streaming={live} />
        </div>
      ) : null
    case 'thought':
      return <Thought id={`${session}/${id}`} text={item.text ?? ''} live={live} />
    case 'tool':
      return item.tool ? <ToolCard session={session} tool={item.tool} end={stop} attempt={attempt} /> : null
    case 'user':
      return <UserMessage text={item.text ?? ''} />
    default:
      return (
        <p className="chat-notice" data-anchor="">
          <Info size={14} aria-hidden="true" /> <span>{visible(item.text ?? '')}</span>
        </p>
      )
  }
})

const longMessage = 1500 // characters, or lines below, beyond which a prompt is folded
const longLines = 14

export function UserMessage({ text, sending = false }: { text: string; sending?: boolean }) {
  const long = text.length > longMessage || text.split('\n').length > longLines
  const [all, setAll] = useState(false)
  return (
    <div className="user-message" data-anchor="" aria-label="You">
      <p dir="auto" className={long && !all ? 'user-folded' : ''}>{text}</p>
      {long && (
        <button type="button" className="link-btn mt-1 text-meta" onClick={() => setAll(!all)}>
          {all ? 'Show less' : 'Show all'}
        </button>
      )}
      {sending && (
        <p className="mt-1 flex items-center gap-2 text-meta text-text3">
          <Spinner /> Sending
        </p>
      )}
    </div>
  )
}

function Thought({ id, text, live }: { id: string; text: string; live: boolean }) {
  const [open, toggle] = useFold(`thought/${id}`, false)
  if (!text.trim() && !live) return null
  return (
    <div className="thought" data-anchor="">
      <button type="button" className="disclose" aria-expanded={open} onClick={toggle}>
        <ChevronRight size={14} aria-hidden="true" /> {live ? 'Reasoning…' : 'Reasoning'}
        {!open && <span className="thought-preview">{visibleLine(live ? text.slice(-240) : text.slice(0, 240)).replace(/[*_`#]+/g, '')}</span>}
      </button>
      {open && (
        <div className="thought-text">
          <Markdown text={text} streaming={live} />
        </div>
      )}
    </div>
  )
}

interface FoldedProps {
  session: string
  entries: { key: number; item: Item; attempt?: number }[]
}

/** The tools of a turn that is over, in one line. */
function FoldedTools({ session, entries }: FoldedProps) {
  const tools = entries.flatMap((e) => (e.item.tool ? [e.item.tool] : []))
  const kept = useAnyOpened([...tools.map((t) => `${session}/${t.id}`), ...entries.map((e) => `thought/${session}/${e.key}`)])
  const [open, toggle] = useFold(`tools/${session}/${entries[0]!.key}`, kept)
  const ms = tools.reduce((sum, t) => sum + (t.durationMs ?? 0), 0)
  const built = tools.filter((t) => t.tool === 'registerCapability')
  return (
    <div className={`folded ${built.length > 0 ? 'folded-built' : ''}`}>
      <button type="button" className="tool-row" aria-expanded={open} onClick={toggle} data-anchor="">
        <PhaseIcon phase="done" />
        <span className="folded-words">
          {tools.map((tool, i) => {
            const line = describe(tool, 'done')
            const verb = i === 0 ? line.verb : line.verb.toLowerCase()
            return (
              <span key={tool.id}>
                {i > 0 && ', '}
                {verb} {tool.tool === 'listCapabilities' ? line.rest : <code>{line.name}</code>}
                {tool.tool === 'registerCapability' && ` ${line.rest}`}
                {tool.tool === 'registerCapability' && built.length === 1 && tool.steps && <span className="text-text3"> ({checks(tool.steps)})</span>}
              </span>
            )
          })}
        </span>
        <span className="tool-time">{duration(ms)}</span>
        <ChevronRight size={14} className="tool-chevron" aria-hidden="true" />
      </button>
      {!open && built.map((tool) => <Reach key={tool.id} tool={tool} />)}
      {open && (
        <div className="folded-list">
          {entries.map((e) => (
            <Entry key={e.key} session={session} id={e.key} item={e.item} attempt={e.attempt} live={false} />
          ))}
        </div>
      )}
    </div>
  )
}

const waits = { model: 'Waiting for the model', gate: 'Checking the capability', sandbox: 'Running in the sandbox', you: 'Waiting for you' }

/** What happens now: a model whose words arrive is not waited for. */
function waitingFor(session: SessionState, last?: ReturnType<typeof entries>[number]): string {
  const item = last && 'item' in last ? last.item : undefined
  if (session.waiting === 'model' && item?.type === 'agent') return 'Answering'
  if (session.waiting === 'model' && item?.type === 'thought') return 'Reasoning'
  return session.waiting ? waits[session.waiting] : 'Working'
}

/** What is waited for, and how long already. */
function Waiting({ session, what }: { session: SessionState; what: string }) {
  const connected = useStore((s) => s.connection === 'open')
  const now = useNow(connected)
  const [since] = useState(Date.now) // of this wait: it is mounted anew for each
  if (!connected) return <p className="waiting text-wait">Not connected: what happens meanwhile is shown later</p>
  return (
    <p className={`waiting ${session.waiting === 'you' ? 'text-wait' : ''}`}>
      {session.waiting !== 'you' && <Spinner />}
      {what}
      <span className="tabular-nums">· {seconds(now - since)}</span>
    </p>
  )
}

function TurnEnd({ turn, onSendAgain }: { turn: TurnView; onSendAgain?: (text: string) => void }) {
  const end = turn.end!
  const answer = turn.items.filter((i) => i.type === 'agent').map((i) => i.text ?? '').join('\n\n')
  const prompt = turn.user?.text
  return (
    <>
      <EndingCard turn={end} onSendAgain={prompt && onSendAgain ? () => onSendAgain(prompt) : undefined} />
      <p className="turn-meta">
        {answer.trim() && <CopyButton text={answer} label="Copy answer" />}
        <span>{figures(end, answer.trim() !== '')}</span>
      </p>
    </>
  )
}

/** Time, calls, tokens and cost. Where text came and nobody counted its tokens, they are unknown, and not none. */
function figures(end: Turn, answered: boolean): string {
  const usage = end.usage
  const tokens = usage ? usage.input + usage.output + usage.cacheRead + usage.cacheWrite : 0
  const unknown = usage && answered ? 'tokens unknown' : ''
  return [
    end.durationMs !== undefined && duration(end.durationMs),
    end.modelCalls !== undefined && plural(end.modelCalls, 'model call'),
    tokens > 0 ? `${count(tokens)} tokens` : unknown,
    tokens > 0 && (usage?.costUSD === undefined ? 'cost unknown' : `${end.costPartial ? 'at least ' : ''}${cost(usage.costUSD)}`),
  ].filter(Boolean).join(' · ')
}
