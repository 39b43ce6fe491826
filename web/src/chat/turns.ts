// A conversation's items, in turns: what a person asked, what was done, how it ended.

import type { Item, Tool, Turn } from '../api/types'

/** Something that is shown in a turn: an item, or tools of a turn that is over, folded. */
export type Entry = { key: number; item: Item; attempt?: number } | { key: number; folded: { key: number; item: Item; attempt?: number }[] }

export interface TurnView {
  key: number // index of its first item
  user?: Item
  items: Item[] // what followed, without the end
  end?: Turn
}

/** Splits items at what a person said. A turn's item ends it. */
export function turns(items: Item[]): TurnView[] {
  const list: TurnView[] = []
  let over = true
  items.forEach((item, index) => {
    let turn = list[list.length - 1]
    if (!turn || over || (item.type === 'user' && turn.items.length > 0)) {
      turn = { key: index, items: [] }
      list.push(turn)
      over = false
    }
    if (item.type === 'user' && !turn.user && turn.items.length === 0) turn.user = item
    else if (item.type === 'turn') {
      turn.end = item.turn
      over = true
    } else turn.items.push(item)
  })
  return list
}

/**
 * What is shown of a turn. Once it is over, neighbouring tools and reasoning fold into
 * one line; what failed is never hidden, and a single tool stands for itself.
 */
export function entries(turn: TurnView): Entry[] {
  const attempts = new Map<string, number>()
  const list: Entry[] = []
  let run: { key: number; item: Item; attempt?: number }[] = []
  const flush = () => {
    if (run.filter((e) => e.item.type === 'tool').length > 1) list.push({ key: run[0]!.key, folded: run })
    else list.push(...run)
    run = []
  }
  turn.items.forEach((item, i) => {
    const entry = { key: turn.key + (turn.user ? 1 : 0) + i, item, attempt: item.tool && attempt(item.tool, attempts) }
    if (turn.end && foldable(item, turn.end)) return void run.push(entry)
    flush()
    list.push(entry)
  })
  flush()
  return list
}

function foldable(item: Item, end: Turn): boolean {
  if (item.type === 'thought') return true
  return item.type === 'tool' && item.tool?.status === 'done' && end.stop === 'end_turn'
}

/** Which try to build the same capability a call is, from 1. */
function attempt(tool: Tool, seen: Map<string, number>): number | undefined {
  if (tool.tool !== 'registerCapability' || !tool.name) return undefined
  const n = (seen.get(tool.name) ?? 0) + 1
  seen.set(tool.name, n)
  return n
}

/** Reports whether two views of a turn look the same. */
export function same(a: TurnView, b: TurnView): boolean {
  return a.key === b.key && a.user === b.user && a.end === b.end && a.items.length === b.items.length && a.items.every((item, i) => item === b.items[i])
}
