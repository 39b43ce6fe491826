// The one connection over which the host tells what happens.

import { APIError, request } from '../api/client'
import type { EventType, State } from '../api/types'
import { parseId, type StreamEvent } from './events'
import { connection, onResync, receive, signedOut } from './store'

const types: EventType[] = ['snapshot', 'agent', 'session', 'sessions', 'item', 'append', 'reset', 'settings', 'capabilities', 'files', 'setup']
const pause = 1000 // ms between two attempts to connect

let source: EventSource | undefined
let queue: StreamEvent[] = []
let scheduled = false
let retry: ReturnType<typeof setTimeout> | undefined

/** Connects, and stays connected. */
export function connect() {
  onResync(() => reconnect(pause))
  start()
}

function start() {
  source?.close()
  queue = []
  const stream = new EventSource('/api/events')
  source = stream
  stream.onopen = () => connection('open')
  stream.onerror = () => lost(stream)
  for (const type of types) stream.addEventListener(type, (e) => arrived(stream, type, e))
}

function arrived(stream: EventSource, type: EventType, e: MessageEvent<string>) {
  const id = parseId(e.lastEventId)
  if (!id || stream !== source) return
  try {
    queue.push({ ...id, type, data: JSON.parse(e.data) } as StreamEvent)
  } catch {
    return reconnect(pause) // not JSON: the connection was cut in the middle
  }
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

/**
 * A connection that ends is opened again by the browser, which says what it saw
 * last. After an answer other than 200 it gives up: then it is found out why.
 */
function lost(stream: EventSource) {
  if (stream !== source) return
  connection('lost')
  if (stream.readyState === EventSource.CLOSED) void findOut()
}

async function findOut() {
  try {
    await request<State>('GET', '/state')
  } catch (error) {
    if (error instanceof APIError && error.status === 401) return signedOut(error)
  }
  reconnect(pause)
}

function reconnect(after: number) {
  source?.close()
  source = undefined
  queue = []
  clearTimeout(retry)
  retry = setTimeout(start, after)
}
