// All that the host tells by events, in one store.

import { create } from 'zustand'
import { APIError, path, request } from '../api/client'
import type { Conversation, Effect, Model, Outcome, StreamEvent } from './events'
import * as events from './events'
import type { Session, State } from '../api/types'
import { queries } from '../api/queries'

export type Connection = 'connecting' | 'open' | 'lost'

interface Store extends Model {
  connection: Connection
  since: number // when the connection got this way
  signedOut?: { login?: string }
  failed: Record<string, APIError> // sessions that could not be fetched
}

export const useStore = create<Store>(() => ({ ...events.initial, connection: 'connecting', since: Date.now(), failed: {} }))

const { getState: get, setState: set } = useStore

/** Called when events were missed. The stream registers it. */
let resync: () => void = () => {}
export function onResync(f: () => void) {
  resync = f
}

/** Applies events in their order, as one change. */
export function receive(list: StreamEvent[]) {
  let model: Model = get()
  const effects: Effect[] = []
  for (const event of list) {
    const outcome = events.apply(model, event)
    model = outcome.model
    effects.push(...outcome.effects)
    if (outcome.effects.some((e) => e.do === 'resync')) break // the rest comes again
  }
  finish({ model, effects })
}

function finish({ model, effects }: Outcome) {
  set(model)
  for (const effect of effects) run(effect)
}

function run(effect: Effect) {
  switch (effect.do) {
    case 'resync':
      return resync()
    case 'load':
      return void load(effect.session)
    case 'overview':
      return void loadOverview()
    case 'refetch':
      return void queries.invalidateQueries(effect.what === 'all' ? {} : { queryKey: [effect.what] })
  }
}

/** Fetches a session that is open. */
async function load(id: string) {
  try {
    const answer = await request<Session>('GET', path`/sessions/${id}`)
    forgetFailure(id)
    finish(events.loaded(get(), answer))
  } catch (error) {
    if (error instanceof APIError) set({ failed: { ...get().failed, [id]: error } })
    if (error instanceof APIError && error.status === 401) signedOut(error)
  }
}

/** Fetches what no event tells: workspace, model, Deno. */
async function loadOverview() {
  try {
    const state = await request<State>('GET', '/state')
    set(events.overview(get(), state))
  } catch {
    // the connection is lost: the snapshot of the next one has it
  }
}

function forgetFailure(id: string) {
  const { [id]: failure, ...failed } = get().failed
  if (failure) set({ failed })
}

/** Makes a session's conversation be there, and stay up to date. */
export function open(id: string) {
  finish(events.opened(get(), id))
}

/** Fetches a session again that could not be fetched. */
export function reload(id: string) {
  forgetFailure(id)
  void load(id)
}

/** Forgets a session that was deleted. */
export function close(id: string) {
  set(events.closed(get(), id))
}

export function connection(to: Connection) {
  if (get().connection !== to) set({ connection: to, since: Date.now() })
}

/** Records that the host does not know this window. */
export function signedOut(error: APIError) {
  const login = typeof error.body.login === 'string' ? error.body.login : undefined
  set({ signedOut: { login } })
}

/** Forgets that it was so. */
export function signedIn() {
  set({ signedOut: undefined })
}

export const useConversation = (id: string): Conversation | undefined => useStore((s) => s.open[id])
