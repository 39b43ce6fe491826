// What a person can do with sessions.

import { APIError, path, request } from '../api/client'
import { queries } from '../api/queries'
import type { Mode } from '../api/types'
import { accepted, setDraft } from '../state/drafts'
import { close } from '../state/store'

export async function createSession(): Promise<string> {
  return (await request<{ id: string }>('POST', '/sessions')).id
}

/** Sends a prompt; draft is the key of the text that is cleared once it is accepted. */
export async function prompt(session: string, text: string, draft?: string) {
  await request('POST', path`/sessions/${session}/prompt`, { text })
  if (draft !== undefined) accepted(draft, text)
}

export const cancel = (session: string) => request('POST', path`/sessions/${session}/cancel`)

export const setMode = (session: string, mode: Mode) => request('POST', path`/sessions/${session}/mode`, { mode })

/** Answers a question. That somebody else has answered it, or that it was withdrawn, is no failure. */
export async function answer(session: string, permission: string, option: string) {
  try {
    await request('POST', path`/sessions/${session}/permissions/${permission}`, { option })
  } catch (error) {
    if (!(error instanceof APIError && error.code === 'gone')) throw error
  }
}

export async function rename(session: string, title: string) {
  await request('PATCH', path`/sessions/${session}`, { title })
  await queries.invalidateQueries({ queryKey: ['sessions'] })
}

export async function fork(session: string): Promise<string> {
  const { id } = await request<{ id: string }>('POST', path`/sessions/${session}/fork`)
  await queries.invalidateQueries({ queryKey: ['sessions'] })
  return id
}

export async function remove(session: string) {
  await request('DELETE', path`/sessions/${session}`)
  close(session)
  setDraft(session, '')
  await queries.invalidateQueries({ queryKey: ['sessions'] })
}

export const exportURL = (session: string, format: 'markdown' | 'json') => `/api${path`/sessions/${session}/export`}?format=${format}`
