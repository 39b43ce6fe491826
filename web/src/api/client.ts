import type { Fault } from './types'

/** A failed request: what the host said (RFC 9457), or why it could not be asked. */
export class APIError extends Error {
  constructor(
    readonly status: number, // 0: the host was not reached
    message: string,
    readonly code = '',
    readonly hint = '',
    readonly body: Record<string, unknown> = {},
  ) {
    super(message)
    this.name = 'APIError'
  }

  /** What is wrong with single settings. */
  get problems(): Fault[] {
    return Array.isArray(this.body.problems) ? (this.body.problems as Fault[]) : []
  }
}

const kept = 'tendril-token' // in the storage of this origin, which all its windows share

/** What each request needs besides the cookie. */
export const credentials = (): Record<string, string> => ({ 'X-Tendril-Token': localStorage.getItem(kept) ?? '' })

/** Signs in with the code of a link, or with the password. */
export async function signIn(by: { code: string } | { password: string }) {
  const { token } = await request<{ token: string }>('POST', '/login', by)
  localStorage.setItem(kept, token)
}

/** Calls back when another window has signed in. */
export function onSignIn(f: () => void) {
  addEventListener('storage', (e) => {
    if (e.key === kept && e.newValue) f()
  })
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Sends a request to the host. Throws an APIError. */
export async function request<T>(method: Method, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { Accept: 'application/json', ...credentials() }
  if (method !== 'GET') headers['Content-Type'] = 'application/json'
  let response: Response
  try {
    const text = method === 'GET' ? undefined : JSON.stringify(body ?? {})
    response = await fetch(`/api${path}`, { method, headers, body: text, signal, credentials: 'same-origin', cache: 'no-store' })
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw new APIError(0, 'Tendril does not answer. It may have been closed.', 'unreachable', 'Start `tendril` again, and open what it opens: this page then goes on by itself.')
  }
  if (!response.ok) throw await failure(response)
  if (response.status === 204) return undefined as T
  const text = await response.text()
  return (text ? JSON.parse(text) : undefined) as T
}

export async function failure(response: Response): Promise<APIError> {
  let body: Record<string, unknown> = {}
  try {
    const parsed: unknown = await response.json()
    if (parsed && typeof parsed === 'object') body = parsed as Record<string, unknown>
  } catch {
    // no JSON: the status has to do
  }
  const text = (key: string) => (typeof body[key] === 'string' ? body[key] : '')
  const message = text('detail') || text('title') || `Tendril answered with status ${response.status}.`
  return new APIError(response.status, message, text('code'), text('hint'), body)
}

export const path = (strings: TemplateStringsArray, ...values: string[]) =>
  strings.reduce((all, part, i) => all + part + (i < values.length ? encodeURIComponent(values[i]!) : ''), '')
