// The one connection over which the host tells what happens. It is read with fetch: an EventSource cannot send the token.

import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { APIError, credentials, failure, onSignIn } from '../api/client'
import { parseId, type StreamEvent } from './events'
import { connection, onResync, receive, signedIn, signedOut } from './store'

const pause = 1000 // ms between two attempts to connect

let current: AbortController | undefined
let last = '' // the id of the last event of this connection or the one before
let queue: StreamEvent[] = []
let scheduled = false
let retry: ReturnType<typeof setTimeout> | undefined

/** Connects, and stays connected. */
export function connect() {
  onResync(() => reconnect(pause, ''))
  onSignIn(resume)
  start()
}

/** Signed in: connects again. */
export function resume() {
  signedIn()
  reconnect(0, '')
}

function start() {
  const connecting = new AbortController()
  current = connecting
  void read(connecting)
}

async function read(own: AbortController) {
  try {
    const headers: Record<string, string> = { Accept: 'text/event-stream', ...credentials() }
    if (last) headers['Last-Event-ID'] = last
    const response = await fetch('/api/events', { headers, signal: own.signal, credentials: 'same-origin', cache: 'no-store' })
    if (!response.ok || !response.body) throw await failure(response)
    connection('open')
    const parser = createParser({ onEvent: (e) => arrived(own, e) })
    const text = response.body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>).getReader()
    for (let part = await text.read(); !part.done; part = await text.read()) parser.feed(part.value)
  } catch (error) {
    if (own === current && error instanceof APIError && error.status === 401) return signedOut(error)
  }
  if (own !== current) return
  connection('lost')
  reconnect(pause, last)
}

function arrived(own: AbortController, e: EventSourceMessage) {
  const id = parseId(e.id ?? '')
  if (!id || own !== current) return
  try {
    queue.push({ ...id, type: e.event, data: JSON.parse(e.data) } as StreamEvent)
  } catch {
    return reconnect(pause, '') // not JSON
  }
  last = e.id ?? last
  schedule()
}

/** Applies what has arrived once a frame, or soon in a window that is not shown. */
function schedule() {
  if (scheduled) return
  scheduled = true
  if (document.visibilityState === 'visible') requestAnimationFrame(flush)
  else setTimeout(flush, 100)
}

function flush() {
  scheduled = false
  const list = queue
  queue = []
  if (list.length > 0) receive(list)
}

/** Connects again after a while, with what came after an event, or with a snapshot. */
function reconnect(after: number, from: string) {
  current?.abort()
  current = undefined
  if (!from) queue = []
  last = from
  clearTimeout(retry)
  retry = setTimeout(start, after)
}
