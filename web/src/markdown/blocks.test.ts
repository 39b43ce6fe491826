import { describe, expect, it } from 'vitest'
import { isOpenFence, none, source, split } from './blocks'

const sample = `# Title

A paragraph with **bold** text
that goes on.

- one
- two

  still two

- three

1. first
2. second

\`\`\`ts
const a = 1

- no list

\`\`\`

| a | b |
|---|---|
| 1 | 2 |

> a quote
> goes on

Setext
======

Costs $5 and $6. 日本語のテキスト。

[docs]: https://example.com

See [docs].
`

const texts = (text: string) => split(text).list.map((b) => b.text)

describe('split', () => {
  it('loses nothing', () => {
    expect(texts(sample).join('')).toBe(sample)
  })

  it.each([1, 2, 3, 7, 40])('gives the same blocks in steps of %i as at once', (step) => {
    let blocks = none
    for (let end = 0; end < sample.length + step; end += step) blocks = split(sample.slice(0, end), blocks)
    expect(blocks.list).toEqual(split(sample).list)
  })

  it('keeps the blocks in front when a text grows', () => {
    const before = split('one\n\ntwo\n\nthr')
    const after = split('one\n\ntwo\n\nthree', before)
    expect(after.list[0]).toBe(before.list[0])
    expect(after.list[1]).toBe(before.list[1])
    expect(after.list[2]?.text).toBe('three')
  })

  it('keeps a fence whole, blank lines and all', () => {
    expect(texts('```\na\n\nb\n```\n\nc')).toEqual(['```\na\n\nb\n```\n\n', 'c'])
  })

  it('reads a text anew that is another one', () => {
    expect(split('other', split('one\n\ntwo')).list.map((b) => b.text)).toEqual(['other'])
  })

  it('gives the same object for the same text', () => {
    const blocks = split(sample)
    expect(split(sample, blocks)).toBe(blocks)
  })

  it('lets links find their definitions', () => {
    const blocks = split('See [docs].\n\n[docs]: https://example.com\n\nNo link.')
    expect(source(blocks.list[0]!, blocks)).toContain('[docs]: https://example.com')
    expect(source(blocks.list.at(-1)!, blocks)).toBe('No link.')
  })
})

describe('isOpenFence', () => {
  it.each([
    ['```ts\nconst a', true],
    ['```ts\nconst a\n```', false],
    ['```ts\nconst a\n```\n\n', false],
    ['````\n```\n', true],
    ['````\n```\n````', false],
    ['~~~\na\n```', true],
    ['```', true],
    ['text ```', false],
  ])('%j: %s', (text, open) => {
    expect(isOpenFence(text)).toBe(open)
  })
})
