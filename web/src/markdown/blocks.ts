// Markdown in blocks, so that a stream renders only its end anew.

import { lexer } from 'marked'

export interface Block {
  text: string
  start: number // in the whole text
}

/** The blocks of a text, and what makes the next call cheap. */
export interface Blocks {
  text: string
  list: Block[]
  definitions: string // of links; they may stand anywhere
}

export const none: Blocks = { text: '', list: [], definitions: '' }

/**
 * Splits text into blocks. When text continues that of before, only its last block
 * and what follows is read: nothing that is appended changes the blocks in front.
 */
export function split(text: string, before: Blocks = none): Blocks {
  if (text === before.text) return before
  const kept = before.text && text.startsWith(before.text) ? before.list.slice(0, -1) : []
  const last = kept[kept.length - 1]
  let start = last ? last.start + last.text.length : 0
  const list = kept.slice()
  for (const token of lexer(text.slice(start), { gfm: true })) {
    const previous = list[list.length - 1]
    if (token.type === 'space' && previous) {
      list[list.length - 1] = { ...previous, text: previous.text + token.raw }
    } else {
      list.push({ text: token.raw, start })
    }
    start += token.raw.length
  }
  return { text, list, definitions: definitions(list) }
}

function definitions(list: Block[]): string {
  return list.filter((b) => /^ {0,3}\[[^\]\n]+\]:/.test(b.text)).map((b) => b.text.trim()).join('\n')
}

/** A block as it is rendered: with the definitions of links that it may use. */
export function source(block: Block, blocks: Blocks): string {
  return blocks.definitions && block.text.includes('[') ? `${block.text}\n\n${blocks.definitions}` : block.text
}

/** Reports whether a block is a fence that is still open. */
export function isOpenFence(text: string): boolean {
  const opening = /^ {0,3}(`{3,}|~{3,})/.exec(text)
  if (!opening) return false
  const mark = opening[1]!
  const closing = new RegExp(`\\n {0,3}${mark[0]}{${mark.length},}[ \\t]*\\s*$`)
  return !closing.test(text)
}
