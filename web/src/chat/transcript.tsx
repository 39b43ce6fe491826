import { ArrowDown } from 'lucide-react'
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type ReactNode } from 'react'
import type { Conversation } from '../state/events'
import type { SessionState } from '../api/types'
import { Button } from '../ui/button'
import { TurnSection, UserMessage } from './turn'
import { turns } from './turns'
import { useStick } from './stick'

const page = 40 // turns that are mounted at first, and more at a time

interface Props {
  id: string
  conversation: Conversation
  session?: SessionState
  sending?: string // a prompt that is not in the conversation yet
  onSendAgain: (text: string) => void
  children?: ReactNode // below the conversation, always in sight
}

/** A conversation: its last turns, the earlier ones on demand, and a way back to the end. */
export function Transcript({ id, conversation, session, sending, onSendAgain, children }: Props) {
  const { scroller, content, away, toEnd } = useStick()
  const [shown, setShown] = useState(page)
  const list = turns(conversation.items)
  const hidden = Math.max(0, list.length - shown)
  const earlier = useEarlier(scroller, () => setShown((n) => n + page), hidden)
  useEffect(() => {
    if (sending !== undefined) toEnd()
  }, [sending, toEnd])
  const lastTurn = list[list.length - 1]
  const running = session?.running ? session : undefined
  const open = lastTurn?.end === undefined
  return (
    <div className="transcript-frame">
      <div className="transcript" ref={scroller} tabIndex={0} role="log" aria-live="off" aria-label="Conversation">
        <div className="transcript-column" ref={content}>
          {hidden > 0 && (
            <div className="grid justify-center pb-4" ref={earlier}>
              <Button small kind="ghost" onClick={() => setShown((n) => n + page)}>
                Show {Math.min(hidden, page)} earlier turns
              </Button>
            </div>
          )}
          {list.slice(hidden).map((turn) => (
            <TurnSection key={turn.key} session={id} turn={turn} running={turn === lastTurn && open && !sending ? running : undefined} stale={session !== undefined && !session.running} onSendAgain={turn === lastTurn && !running && sending === undefined ? onSendAgain : undefined} />
          ))}
          {sending !== undefined && (
            <section className="turn">
              <UserMessage text={sending} sending />
            </section>
          )}
        </div>
      </div>
      {away && (
        <button type="button" className="latest" onClick={toEnd}>
          <ArrowDown size={14} aria-hidden="true" /> Latest
        </button>
      )}
      <div className="dock">{children}</div>
    </div>
  )
}

/** Shows earlier turns when their button comes into sight, and keeps what is in sight where it is. */
function useEarlier(scroller: React.RefObject<HTMLElement | null>, show: () => void, hidden: number) {
  const before = useRef<{ hidden: number; height: number; top: number }>(undefined)
  const element = scroller.current
  if (element && before.current?.hidden !== hidden) before.current = { hidden, height: element.scrollHeight, top: element.scrollTop }
  useLayoutEffect(() => {
    const was = before.current
    const el = scroller.current
    if (el && was && el.scrollHeight > was.height && was.top < el.scrollHeight - el.clientHeight - 200) el.scrollTop = was.top + el.scrollHeight - was.height
    // Only when more turns were mounted: everything else is the work of useStick.
  }, [hidden, scroller])
  const latest = useRef(show)
  latest.current = show
  return useCallback((button: HTMLElement | null) => {
    if (!button) return
    let first = true
    const observer = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting && !first) latest.current()
      first = false
    })
    observer.observe(button)
    return () => observer.disconnect()
  }, [])
}
