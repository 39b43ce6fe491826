import { useCallback, useEffect, useState, type ReactNode } from 'react'
import { useLocation } from 'wouter'
import { overlayOpen } from '../lib/hooks'
import { sentence } from '../lib/words'
import { useTitle } from '../api/queries'
import { visibleLine } from '../lib/visible'
import { open, reload, useConversation, useStore } from '../state/store'
import { Button, Spinner } from '../ui/button'
import { ErrorNotice, Notice } from '../ui/notice'
import { cancel, prompt, setMode } from './actions'
import { Composer } from './composer'
import { DeleteDialog, RenameDialog } from './dialogs'
import { PermissionCard } from './permission-card'
import { SessionMenu } from './session-list'
import { Transcript } from './transcript'

/** One session: its conversation, what it asks, and where the next prompt is written. */
export function OpenChat({ id, lead }: { id: string; lead: ReactNode }) {
  const conversation = useConversation(id)
  const session = useStore((s) => s.sessions[id])
  const failure = useStore((s) => s.failed[id])
  const [problem, setProblem] = useState<unknown>()
  const { sending, send } = useSend(id, conversation?.items.filter((i) => i.type === 'user').length ?? 0)
  useEffect(() => open(id), [id])
  const stop = useCallback(() => cancel(id).catch(setProblem), [id])
  useEscape(session?.running ?? false, stop)
  const again = useCallback((text: string) => void send(text).catch(setProblem), [send])
  const title = visibleLine(useTitle(id) || conversation?.title || '') || 'Untitled'
  return (
    <section className="chat-main" aria-label={title}>
      <Header id={id} title={title} lead={lead} />
      {failure && !conversation?.items.length ? (
        <div className="mx-auto w-full max-w-[560px] p-6">
          {failure.status === 404 ? <Notice>There is no such session: it may have been deleted. <a className="link-btn" href="#/chat">Start a new one</a></Notice> : <ErrorNotice error={failure} retry={<Button small onClick={() => reload(id)}>Try again</Button>} />}
        </div>
      ) : !conversation || (conversation.status === 'loading' && conversation.items.length === 0 && sending === undefined) ? (
        <p className="chat-loading"><Spinner /> Loading the conversation</p>
      ) : (
        <Transcript id={id} conversation={conversation} session={session} sending={sending} onSendAgain={again}>
          {session?.permissions?.map((p) => <PermissionCard key={p.id} session={id} permission={p} tool={conversation.items.find((i) => i.tool && i.tool.id === p.callId)?.tool} />)}
          {problem !== undefined && <Notice tone="fail" action={<Button small kind="ghost" onClick={() => setProblem(undefined)}>Close</Button>}>{sentence(problem)}</Notice>}
          <Composer
            draftKey={id}
            running={session?.running ?? false}
            mode={session?.mode}
            onMode={(mode) => void setMode(id, mode).catch(setProblem)}
            onSend={(text) => send(text, id)}
            onStop={stop}
          />
        </Transcript>
      )}
    </section>
  )
}

/** Sends prompts, and knows the one that is not in the conversation yet. */
function useSend(id: string, prompts: number) {
  const [pending, setPending] = useState<{ text: string; after: number }>()
  const send = useCallback(
    async (text: string, draft?: string) => {
      setPending({ text, after: prompts })
      try {
        await prompt(id, text, draft)
      } catch (e) {
        setPending(undefined)
        throw e
      }
    },
    [id, prompts],
  )
  return { sending: pending && prompts <= pending.after ? pending.text : undefined, send }
}

/** Esc stops what runs, once nothing lies above that it would close. */
function useEscape(running: boolean, stop: () => Promise<unknown>) {
  useEffect(() => {
    if (!running) return
    const down = (e: KeyboardEvent) => {
      if (e.key !== 'Escape' || e.isComposing || e.defaultPrevented || overlayOpen()) return
      void stop()
    }
    window.addEventListener('keydown', down)
    return () => window.removeEventListener('keydown', down)
  }, [running, stop])
}

function Header({ id, title, lead }: { id: string; title: string; lead: ReactNode }) {
  const [, go] = useLocation()
  const [dialog, setDialog] = useState<'rename' | 'delete'>()
  return (
    <header className="chat-head">
      {lead}
      <h1 dir="auto" title={title}>{title}</h1>
      <SessionMenu id={id} onPick={go} onRename={() => setDialog('rename')} onDelete={() => setDialog('delete')} />
      {dialog === 'rename' && <RenameDialog id={id} title={title} onClose={() => setDialog(undefined)} />}
      {dialog === 'delete' && <DeleteDialog id={id} title={title} onClose={() => setDialog(undefined)} onDeleted={() => go('/chat')} />}
    </header>
  )
}
