// What server-sent events do to what the app knows. Pure: no network, no clock.
//
// Events of one epoch are numbered without a gap. A snapshot starts an epoch, or
// mends a gap. What a session's answer already contains (n ≤ its event) is not
// applied again; what arrives while it is being fetched is kept and applied after.

import type { Agent, EventData, EventType, Item, Session, SessionState, SetupProgress, State } from '../api/types'

export type StreamEvent = { [T in EventType]: { epoch: string; n: number; type: T; data: EventData[T] } }[EventType]
type SessionEvent = Extract<StreamEvent, { type: 'item' | 'append' }>

export interface Conversation {
  status: 'loading' | 'ready'
  title: string
  epoch: string
  event: number
  items: Item[]
  held: SessionEvent[] // arrived while the session is being fetched
}

/** What the app knows from the host's events. */
export interface Model {
  state?: Omit<State, 'sessions' | 'agent'>
  agent?: Agent
  sessions: Record<string, SessionState>
  open: Record<string, Conversation>
  setup?: SetupProgress
}

/** What has to be done after an event. */
export type Effect =
  | { do: 'resync' } // events were missed: open the stream anew, for a snapshot
  | { do: 'load'; session: string }
  | { do: 'overview' } // of workspace, model and Deno: fetch the state
  | { do: 'refetch'; what: 'sessions' | 'settings' | 'capabilities' | 'files' | 'all' }

export interface Outcome {
  model: Model
  effects: Effect[]
}

export const initial: Model = { sessions: {}, open: {} }

/** Reads the id of an event, "<epoch>-<n>"; undefined when it is none. */
export function parseId(id: string): { epoch: string; n: number } | undefined {
  const cut = id.lastIndexOf('-')
  const digits = id.slice(cut + 1)
  if (cut <= 0 || !/^\d+$/.test(digits)) return undefined
  return { epoch: id.slice(0, cut), n: Number(digits) }
}

/** Applies one event. */
export function apply(model: Model, event: StreamEvent): Outcome {
  if (event.type === 'snapshot') return snapshot(model, event.data)
  const known = model.state
  if (!known) return { model, effects: [{ do: 'resync' }] }
  if (event.epoch !== known.epoch) return { model, effects: [] } // of an older host; the new one begins with a snapshot
  if (event.n <= known.event) return { model, effects: [] } // a double
  if (event.n > known.event + 1) return { model, effects: [{ do: 'resync' }] }
  const next = { ...model, state: { ...known, event: event.n } }
  return change(next, event)
}

function snapshot(model: Model, data: State): Outcome {
  const { sessions, agent, ...state } = data
  const open: Record<string, Conversation> = {}
  const effects: Effect[] = [{ do: 'refetch', what: 'all' }]
  for (const [id, conversation] of Object.entries(model.open)) {
    open[id] = { ...conversation, status: 'loading', held: [] } // its items stay visible until the answer is there
    effects.push({ do: 'load', session: id })
  }
  return { model: { ...model, state, agent, sessions: Object.fromEntries((sessions ?? []).map((s) => [s.id, s])), open }, effects }
}

function change(model: Model, event: Exclude<StreamEvent, { type: 'snapshot' }>): Outcome {
  switch (event.type) {
    case 'agent':
      return { model: { ...model, agent: event.data }, effects: [] }
    case 'session':
      return { model: { ...model, sessions: { ...model.sessions, [event.data.id]: event.data } }, effects: [] }
    case 'setup':
      return { model: { ...model, setup: event.data }, effects: [] }
    case 'reset':
      return reset(model, event.data.session)
    case 'item':
    case 'append':
      return conversationEvent(model, event)
    case 'settings':
      return { model, effects: [{ do: 'overview' }, { do: 'refetch', what: 'settings' }] }
    default:
      return { model, effects: [{ do: 'refetch', what: event.type }] }
  }
}

function reset(model: Model, session: string): Outcome {
  const conversation = model.open[session]
  if (!conversation) return { model, effects: [] }
  return { model: withConversation(model, session, { ...conversation, status: 'loading', held: [] }), effects: [{ do: 'load', session }] }
}

function conversationEvent(model: Model, event: SessionEvent): Outcome {
  const session = event.data.session
  const conversation = model.open[session]
  if (!conversation) return { model, effects: [] } // not looked at: it is fetched when it is opened
  if (conversation.status === 'loading') {
    return { model: withConversation(model, session, { ...conversation, held: [...conversation.held, event] }), effects: [] }
  }
  const items = applyItem(conversation, event)
  if (!items) return reset(model, session)
  return { model: withConversation(model, session, { ...conversation, items }), effects: [] }
}

/** The items after an event; undefined when it does not fit, so that something was missed. */
function applyItem(conversation: Conversation, event: SessionEvent): Item[] | undefined {
  const { items } = conversation
  if (event.epoch !== conversation.epoch || event.n <= conversation.event) return items
  const { index } = event.data
  if (event.type === 'item') {
    if (index > items.length) return undefined
    const next = items.slice()
    next[index] = event.data.item
    return next
  }
  const item = items[index]
  if (!item) return undefined
  const next = items.slice()
  next[index] = { ...item, text: (item.text ?? '') + event.data.text }
  return next
}

/** Opens a conversation: from now on its events are kept until it was fetched. */
export function opened(model: Model, session: string): Outcome {
  if (model.open[session]) return { model, effects: [] }
  const conversation: Conversation = { status: 'loading', title: '', epoch: '', event: 0, items: [], held: [] }
  return { model: withConversation(model, session, conversation), effects: [{ do: 'load', session }] }
}

/** Takes a fetched session, and what happened since it was read. */
export function loaded(model: Model, answer: Session): Outcome {
  const before = model.open[answer.id]
  if (!before || !model.state) return { model, effects: [] }
  if (answer.epoch !== model.state.epoch) return { model, effects: [{ do: 'resync' }] } // the host was started again meanwhile
  let conversation: Conversation = { ...before, status: 'ready', title: answer.title, epoch: answer.epoch, event: answer.event, items: answer.items ?? [], held: [] }
  for (const event of before.held) {
    const items = applyItem(conversation, event)
    if (!items) return { model, effects: [{ do: 'load', session: answer.id }] }
    conversation = { ...conversation, items }
  }
  const next = withConversation(model, answer.id, conversation)
  const newer = answer.event >= model.state.event || !model.sessions[answer.id]
  return { model: newer ? { ...next, sessions: { ...next.sessions, [answer.id]: answer.state } } : next, effects: [] }
}

/** Takes what a fetched state says beside what events tell. */
export function overview(model: Model, fetched: State): Model {
  const { sessions: _sessions, agent: _agent, event: _event, ...rest } = fetched
  if (!model.state || model.state.epoch !== rest.epoch) return model
  return { ...model, state: { ...rest, event: model.state.event } }
}

/** Forgets a session that is gone. */
export function closed(model: Model, session: string): Model {
  const { [session]: _conversation, ...open } = model.open
  const { [session]: _state, ...sessions } = model.sessions
  return { ...model, open, sessions }
}

function withConversation(model: Model, session: string, conversation: Conversation): Model {
  return { ...model, open: { ...model.open, [session]: conversation } }
}
