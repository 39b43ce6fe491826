// What was typed and not yet sent, by session. It survives everything but being sent.

import { useCallback, useSyncExternalStore } from 'react'

const key = (session: string) => `tendril.draft.${session}`
const memory = new Map<string, string>() // when there is no storage, this must do
const listeners = new Set<() => void>()

function read(session: string): string {
  const kept = memory.get(session)
  if (kept !== undefined) return kept
  try {
    return localStorage.getItem(key(session)) ?? ''
  } catch {
    return ''
  }
}

export function setDraft(session: string, text: string) {
  memory.set(session, text)
  try {
    if (text) localStorage.setItem(key(session), text)
    else localStorage.removeItem(key(session))
  } catch {
    // full or forbidden: it is in memory
  }
  for (const listener of listeners) listener()
}

/** Clears a draft that was accepted, unless it was changed meanwhile. */
export function accepted(session: string, sent: string) {
  if (read(session) === sent) setDraft(session, '')
}

function subscribe(listener: () => void) {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** The draft of a session, and how to change it. */
export function useDraft(session: string): [string, (text: string) => void] {
  const text = useSyncExternalStore(subscribe, () => read(session))
  const change = useCallback((value: string) => setDraft(session, value), [session])
  return [text, change]
}
