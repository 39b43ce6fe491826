import { useState, type ReactNode } from 'react'
import { useLocation } from 'wouter'
import type { Mode } from '../api/types'
import { missingKey, plain } from '../lib/words'
import { useStore } from '../state/store'
import { Mark } from '../ui/mark'
import { ErrorNotice } from '../ui/notice'
import { createSession, prompt, setMode } from './actions'
import { Composer } from './composer'

const prompts = ['How many words are in my text files?', 'What did I spend per category?', 'Which tasks are still open?']

const draft = 'new'

/** The start of a session. It is made when its first prompt is sent. */
export function EmptyChat({ lead }: { lead: ReactNode }) {
  const [, go] = useLocation()
  const [made, setMade] = useState<string>() // by an attempt whose prompt was not accepted
  const [mode, chooseMode] = useState<Mode>('policy')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const demo = useStore((s) => s.state?.demo)
  const problem = useStore((s) => s.state?.workspace.error ?? (s.state?.demo ? undefined : s.state?.modelError))
  const key = problem && missingKey(problem)
  const send = async (text: string) => {
    const id = made ?? (await createSession())
    setMade(id)
    if (made || mode !== 'policy') await setMode(id, mode)
    await prompt(id, text, draft)
    go(`/chat/${id}`)
  }
  const example = async (text: string) => {
    setBusy(true)
    try {
      await send(text)
    } catch (e) {
      setError(e)
      setBusy(false)
    }
  }
  return (
    <section className="chat-main" aria-label="New session">
      {lead && <header className="chat-head">{lead}</header>}
      <div className="empty-chat">
        <div className="empty-column">
          <span className="text-accent"><Mark size={28} /></span>
          <h1 className="text-head font-semibold">What is to be done?</h1>
          <p className="text-text2">Tendril builds the tool that a task needs, checks it, and keeps it for the next time.</p>
          {problem && <p className="text-wait">{plain(problem)} {key ? <a className="link-btn" href={`#/settings/keys/${key}`}>Store one</a> : <a className="link-btn" href="#/settings/model">Open Settings</a>}</p>}
          {error !== undefined && <ErrorNotice error={error} />}
          <ul className="empty-prompts" aria-label="Examples">
            {prompts.map((text) => (
              <li key={text}>
                <button type="button" disabled={busy} onClick={() => void example(text)}>{text}</button>
              </li>
            ))}
          </ul>
          {demo && <p className="help">This is the demo: it plays these three, with real files in the workspace. <a className="link-btn" href="#/settings/model">Choose a model</a> for everything else.</p>}
        </div>
      </div>
      <div className="dock">
        <Composer draftKey={draft} running={false} mode={mode} onMode={chooseMode} onSend={send} onStop={() => Promise.resolve()} />
      </div>
    </section>
  )
}
