import { describe, expect, it } from 'vitest'
import type { Item, Stop, Tool } from '../api/types'
import { entries, same, turns } from './turns'

const user = (text: string): Item => ({ type: 'user', text })
const agent = (text: string): Item => ({ type: 'agent', text })
const tool = (more: Partial<Tool> = {}): Item => ({ type: 'tool', tool: { id: '1', tool: 'execute', status: 'done', ...more } })
const end = (stop: Stop = 'end_turn'): Item => ({ type: 'turn', turn: { number: 1, stop } })

describe('turns', () => {
  it('splits at what a person said', () => {
    const list = turns([user('a'), agent('1'), end(), user('b'), agent('2')])
    expect(list.map((t) => [t.user?.text, t.items.length, t.end?.stop])).toEqual([['a', 1, 'end_turn'], ['b', 1, undefined]])
  })

  it('loses nothing that has no prompt, or two', () => {
    const items = [agent('x'), end(), agent('y'), user('a'), user('b'), agent('z')]
    const list = turns(items)
    const count = list.reduce((n, t) => n + t.items.length + (t.user ? 1 : 0) + (t.end ? 1 : 0), 0)
    expect(count).toBe(items.length)
  })

  it('knows a turn that has not changed', () => {
    const items = [user('a'), agent('1'), end(), user('b')]
    const before = turns(items)
    const after = turns([...items, agent('2')])
    expect(same(before[0]!, after[0]!)).toBe(true)
    expect(same(before[1]!, after[1]!)).toBe(false)
  })
})

describe('entries', () => {
  const shapes = (items: Item[]) => entries(turns(items)[0]!).map((e) => ('folded' in e ? e.folded.length : e.item.type))

  it('folds the tools of a finished turn', () => {
    expect(shapes([user('a'), tool(), tool(), agent('x'), end()])).toEqual([2, 'agent'])
  })
  it('folds nothing while the turn runs, or after it was stopped', () => {
    expect(shapes([user('a'), tool(), tool()])).toEqual(['tool', 'tool'])
    expect(shapes([user('a'), tool(), tool(), end('cancelled')])).toEqual(['tool', 'tool'])
  })
  it('never hides what failed', () => {
    expect(shapes([user('a'), tool(), tool(), tool({ status: 'failed' }), tool(), end()])).toEqual([2, 'tool', 'tool'])
  })
  it('leaves a single tool as it is', () => {
    expect(shapes([user('a'), { type: 'thought', text: 't' }, tool(), end()])).toEqual(['thought', 'tool'])
  })
  it('counts attempts to build the same capability', () => {
    const list = entries(turns([user('a'), tool({ tool: 'registerCapability', name: 'x', status: 'failed' }), tool({ tool: 'registerCapability', name: 'x' }), tool({ tool: 'registerCapability', name: 'y' })])[0]!)
    expect(list.map((e) => ('folded' in e ? 0 : e.attempt))).toEqual([1, 2, 1])
  })
})
