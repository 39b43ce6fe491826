import { ArrowUp, Square } from 'lucide-react'
import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent } from 'react'
import { APIError } from '../api/client'
import { sentence } from '../lib/words'
import type { Mode } from '../api/types'
import { useDraft } from '../state/drafts'
import { useStore } from '../state/store'
import { Spinner } from '../ui/button'
import { FieldError } from '../ui/field'

interface Props {
  draftKey: string
  running: boolean
  mode?: Mode // undefined: it is not known yet
  onMode: (mode: Mode) => void
  onSend: (text: string) => Promise<void> // the draft is cleared by whoever accepts it
  onStop: () => Promise<unknown>
}

/** Where a prompt is written. What is typed is kept until it was accepted. */
export function Composer({ draftKey, running, mode, onMode, onSend, onStop }: Props) {
  const [text, setText] = useDraft(draftKey)
  const [sending, setSending] = useState(false)
  const [problem, setProblem] = useState('')
  const area = useRef<HTMLTextAreaElement>(null)
  const ready = useStore((s) => s.agent?.status === 'ready' && s.connection === 'open')
  useGrow(area, text)
  useEffect(() => {
    area.current?.focus({ preventScroll: true })
    setProblem('')
  }, [draftKey])

  const send = async () => {
    if (text.trim() === '' || sending) return
    if (running) return setProblem('Tendril is still working: wait for it, or stop it. What you typed stays here.')
    setSending(true)
    setProblem('')
    try {
      await onSend(text)
    } catch (e) {
      setProblem(refusal(e))
    } finally {
      setSending(false)
    }
  }
  const key = (e: KeyboardEvent<HTMLTextAreaElement>) => {
    if (e.nativeEvent.isComposing || e.keyCode === 229) return // a word of Japanese, say, is being written
    if (e.key !== 'Enter' || e.shiftKey || e.altKey) return
    e.preventDefault()
    void send()
  }
  return (
    <div className="composer">
      {problem && <div className="px-3 pt-2"><FieldError text={problem} /></div>}
      <textarea
        ref={area}
        rows={1}
        dir="auto"
        value={text}
        aria-label="Message to Tendril"
        placeholder={running ? 'Write the next message' : 'Message Tendril'}
        onChange={(e) => {
          setText(e.target.value)
          setProblem('')
        }}
        onKeyDown={key}
        enterKeyHint="send"
        spellCheck
      />
      <div className="composer-foot">
        {mode && (
          <label className="composer-mode" title={modeHelp}>
            <span className="sr-only">Permissions</span>
            <select value={mode} onChange={(e) => onMode(e.target.value as Mode)}>
              <option value="policy">Permissions: as in Settings</option>
              <option value="ask">Permissions: ask about each new host</option>
            </select>
          </label>
        )}
        <span className={`composer-hint ${ready ? 'composer-keys' : ''}`}>{!ready ? <Unready /> : running ? <><span className="key">Esc</span> stops</> : <><span className="key">Enter</span> sends, <span className="key">Shift Enter</span> new line</>}</span>
        {running ? (
          <StopButton onStop={onStop} />
        ) : (
          <button type="button" className="send-btn" aria-label="Send" title="Send" disabled={text.trim() === '' || sending || !ready} onClick={() => void send()}>
            {sending ? <Spinner /> : <ArrowUp size={18} aria-hidden="true" />}
          </button>
        )}
      </div>
    </div>
  )
}

const modeHelp = `Before a capability reaches the network:
as in Settings: what Settings > Sandbox says of the network;
ask about each new host: a card asks for every host that was not allowed yet. What was allowed, until a restart or always, is not asked about again.`

function Unready() {
  const status = useStore((s) => (s.connection === 'open' ? s.agent?.status : undefined))
  if (status === 'starting' || status === 'restarting') return <>The agent is starting…</>
  return <span className="text-wait">{status ? 'The agent does not run' : 'Not connected'}</span>
}

export function StopButton({ onStop }: { onStop: () => Promise<unknown> }) {
  const [stopping, setStopping] = useState(false)
  const connected = useStore((s) => s.connection === 'open')
  const stop = () => {
    setStopping(true)
    onStop().finally(() => setStopping(false))
  }
  return (
    <button type="button" className="stop-btn" disabled={stopping || !connected} title={connected ? undefined : 'Not connected'} onClick={stop}>
      <Square size={11} fill="currentColor" aria-hidden="true" /> {stopping ? 'Stopping' : 'Stop'}
    </button>
  )
}

function refusal(error: unknown): string {
  if (!(error instanceof APIError)) return sentence(error)
  if (error.code === 'busy') return 'Tendril is still working in this session: wait for it, or stop it.'
  if (error.code === 'agent') return 'The agent is not ready. What you typed stays here; send it when it is.'
  return `Not sent. ${sentence(error)}`
}

/** Lets a text area be as high as its text; the style sheet says how high at most. */
function useGrow(area: React.RefObject<HTMLTextAreaElement | null>, text: string) {
  useLayoutEffect(() => {
    const element = area.current
    if (!element) return
    element.style.height = '0'
    element.style.height = `${element.scrollHeight}px`
  }, [area, text])
}
