import { PanelLeft } from 'lucide-react'
import { useEffect, useState } from 'react'
import { flushSync } from 'react-dom'
import { useLocation } from 'wouter'
import { overlayOpen, useNarrow } from '../lib/hooks'
import { useStore } from '../state/store'
import { IconButton } from '../ui/button'
import { focusPermission } from './permission-card'
import { EmptyChat } from './empty-chat'
import { OpenChat } from './open-chat'
import { SessionList } from './session-list'

/** The list of sessions, and one of them or the start of a new one. */
export function ChatScreen({ session }: { session?: string }) {
  const narrow = useNarrow()
  const [list, setList] = useState(false)
  useKeys(() => setList(true))
  const toggle = narrow && (
    <IconButton label="Sessions" aria-expanded={list} onClick={() => setList(!list)}>
      <PanelLeft size={18} />
    </IconButton>
  )
  return (
    <div className="chat">
      {!narrow && <SessionList current={session} />}
      {narrow && list && (
        <div className="chat-overlay" data-overlay="" onClick={(e) => e.target === e.currentTarget && setList(false)} onKeyDown={(e) => e.key === 'Escape' && setList(false)}>
          <SessionList current={session} onPick={() => setList(false)} />
        </div>
      )}
      {session ? <OpenChat key={session} id={session} lead={toggle} /> : <EmptyChat lead={toggle} />}
    </div>
  )
}

/** Keys that work wherever the focus is. */
function useKeys(showList: () => void) {
  const [, go] = useLocation()
  const question = useStore((s) => Object.values(s.sessions).find((x) => (x.permissions ?? []).length > 0)?.id)
  useEffect(() => {
    const down = (e: KeyboardEvent) => {
      const command = e.ctrlKey || e.metaKey
      if (e.key === 'F6') {
        if (!focusPermission() && question) go(`/chat/${question}`)
        e.preventDefault()
      } else if (command && e.shiftKey && e.key.toLowerCase() === 'o') {
        go('/chat')
        e.preventDefault()
      } else if (command && !e.shiftKey && e.key.toLowerCase() === 'k' && !overlayOpen()) {
        flushSync(showList)
        document.getElementById('session-search')?.focus()
        e.preventDefault()
      }
    }
    window.addEventListener('keydown', down)
    return () => window.removeEventListener('keydown', down)
  }, [go, question, showList])
}
