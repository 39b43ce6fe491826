import { describe, expect, it } from 'vitest'
import type { Item, Session, SessionState, State } from '../api/types'
import { apply, closed, initial, loaded, opened, overview, parseId, type Model, type StreamEvent } from './events'

const session = (id: string, more: Partial<SessionState> = {}): SessionState => ({ id, running: false, mode: 'policy', permissions: [], usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, ...more })

const state = (epoch: string, event: number, sessions: SessionState[] = []): State => ({
  version: '1', epoch, event, agent: { status: 'ready', since: '', restarts: 0 }, workspace: { path: '/w', exists: true },
  demo: false, deno: {}, setupNeeded: false, fixed: [], sessions,
})

const snapshot = (epoch: string, n: number, sessions: SessionState[] = []): StreamEvent => ({ epoch, n, type: 'snapshot', data: state(epoch, n, sessions) })
const item = (n: number, index: number, value: Item, epoch = 'a'): StreamEvent => ({ epoch, n, type: 'item', data: { session: 's', index, item: value } })
const append = (n: number, index: number, text: string, epoch = 'a'): StreamEvent => ({ epoch, n, type: 'append', data: { session: 's', index, text } })
const answer = (event: number, items: Item[], epoch = 'a'): Session => ({
  id: 's', title: 'S', epoch, event, items, state: session('s'), client: 'app', created: '', updated: '', folder: '', turns: 1,
})

function play(model: Model, ...events: StreamEvent[]) {
  const effects = []
  for (const event of events) {
    const outcome = apply(model, event)
    model = outcome.model
    effects.push(...outcome.effects)
  }
  return { model, effects }
}

/** A model at event 10 of epoch a, with session s open and loaded. */
function ready(items: Item[] = [{ type: 'user', text: 'hi' }]) {
  const start = play(initial, snapshot('a', 10)).model
  return loaded(opened(start, 's').model, answer(10, items)).model
}

describe('ids', () => {
  it('splits at the last dash', () => {
    expect(parseId('3f2a-9c-17')).toEqual({ epoch: '3f2a-9c', n: 17 })
  })
  it('refuses what is none', () => {
    for (const id of ['', '-1', 'a', 'a-', 'a-x', 'a--1x']) expect(parseId(id)).toBeUndefined()
  })
})

describe('the stream', () => {
  it('asks for a snapshot when it begins with anything else', () => {
    expect(apply(initial, append(1, 0, 'x')).effects).toEqual([{ do: 'resync' }])
  })

  it('applies events in their order', () => {
    const { model, effects } = play(ready(), item(11, 1, { type: 'agent', text: 'He' }), append(12, 1, 'llo'))
    expect(model.open.s?.items).toEqual([{ type: 'user', text: 'hi' }, { type: 'agent', text: 'Hello' }])
    expect(model.state?.event).toBe(12)
    expect(effects).toEqual([])
  })

  it('applies a double once', () => {
    const { model } = play(ready(), item(11, 1, { type: 'agent', text: 'a' }), append(12, 1, 'b'), append(12, 1, 'b'), item(11, 1, { type: 'agent', text: 'a' }))
    expect(model.open.s?.items[1]?.text).toBe('ab')
  })

  it('resyncs after a gap, and applies nothing beyond it', () => {
    const { model, effects } = play(ready(), append(12, 0, '!'))
    expect(effects).toEqual([{ do: 'resync' }])
    expect(model.open.s?.items[0]?.text).toBe('hi')
    expect(model.state?.event).toBe(10)
  })

  it('mends a gap with the snapshot and what it fetches', () => {
    let { model } = play(ready(), append(12, 0, '!'))
    const outcome = apply(model, snapshot('a', 15))
    expect(outcome.effects).toContainEqual({ do: 'load', session: 's' })
    model = loaded(outcome.model, answer(15, [{ type: 'user', text: 'hi!!' }])).model
    expect(play(model, append(16, 0, '?')).model.open.s?.items[0]?.text).toBe('hi!!?')
  })

  it('ignores events of an older epoch', () => {
    const { model, effects } = play(ready(), snapshot('b', 3), append(11, 0, 'old', 'a'))
    expect(model.state).toMatchObject({ epoch: 'b', event: 3 })
    expect(model.open.s?.items[0]?.text).toBe('hi')
    expect(effects.filter((e) => e.do === 'resync')).toEqual([])
  })

  it('replaces everything with a snapshot, but keeps open items on the screen', () => {
    const before = play(ready(), { epoch: 'a', n: 11, type: 'session', data: session('gone') }).model
    const { model, effects } = play(before, snapshot('b', 1, [session('new')]))
    expect(Object.keys(model.sessions)).toEqual(['new'])
    expect(model.open.s).toMatchObject({ status: 'loading', items: [{ type: 'user', text: 'hi' }] })
    expect(effects).toEqual([{ do: 'refetch', what: 'all' }, { do: 'load', session: 's' }])
  })

  it('refetches what an event says has changed', () => {
    const { effects } = play(ready(), { epoch: 'a', n: 11, type: 'sessions', data: {} }, { epoch: 'a', n: 12, type: 'settings', data: {} })
    expect(effects).toEqual([{ do: 'refetch', what: 'sessions' }, { do: 'overview' }, { do: 'refetch', what: 'settings' }])
  })

  it('does not care for conversations that are not open', () => {
    const start = play(initial, snapshot('a', 10)).model
    const { model, effects } = play(start, append(11, 5, 'x'))
    expect(effects).toEqual([])
    expect(model.state?.event).toBe(11)
  })
})

describe('the overview', () => {
  it('changes neither the position nor what events tell', () => {
    const model = overview(ready(), { ...state('a', 99, [session('x')]), demo: true })
    expect(model.state).toMatchObject({ demo: true, event: 10 })
    expect(model.sessions.x).toBeUndefined()
  })
  it('of another epoch is not taken', () => {
    expect(overview(ready(), { ...state('b', 1), demo: true }).state?.demo).toBe(false)
  })
})

describe('a conversation', () => {
  it('keeps what arrives while it is fetched, and applies only what the answer lacks', () => {
    const start = opened(play(initial, snapshot('a', 10)).model, 's').model
    const during = play(start, append(11, 0, 'b'), append(12, 0, 'c')).model
    const { model } = loaded(during, answer(11, [{ type: 'agent', text: 'ab' }]))
    expect(model.open.s?.items[0]?.text).toBe('abc')
  })

  it('ignores events that the answer was ahead of', () => {
    const start = opened(play(initial, snapshot('a', 10)).model, 's').model
    const { model } = loaded(start, answer(12, [{ type: 'agent', text: 'abc' }]))
    expect(play(model, append(11, 0, 'b'), append(12, 0, 'c'), append(13, 0, 'd')).model.open.s?.items[0]?.text).toBe('abcd')
  })

  it('is fetched again after a reset', () => {
    const { model, effects } = play(ready(), { epoch: 'a', n: 11, type: 'reset', data: { session: 's' } }, append(12, 0, '?'))
    expect(effects).toEqual([{ do: 'load', session: 's' }])
    expect(loaded(model, answer(11, [{ type: 'user', text: 'new' }])).model.open.s?.items[0]?.text).toBe('new?')
  })

  it('is fetched again when an index does not fit', () => {
    expect(play(ready(), append(11, 7, 'x')).effects).toEqual([{ do: 'load', session: 's' }])
    expect(play(ready(), item(11, 2, { type: 'agent' })).effects).toEqual([{ do: 'load', session: 's' }])
  })

  it('of another epoch is not taken', () => {
    const start = opened(play(initial, snapshot('a', 10)).model, 's').model
    const { model, effects } = loaded(start, answer(1, [], 'b'))
    expect(effects).toEqual([{ do: 'resync' }])
    expect(model.open.s?.status).toBe('loading')
  })

  it('is forgotten when it is closed', () => {
    const model = closed(ready(), 's')
    expect(model.open.s).toBeUndefined()
    expect(model.sessions.s).toBeUndefined()
  })
})
