import { describe, expect, it } from 'vitest'
import { age, cost, count, duration, seconds } from './format'
import { visible, visibleLine } from './visible'

describe('visible', () => {
  it('shows what reorders or hides text', () => {
    expect(visible('a\u202Eb\u200Bc\u0007')).toBe('a⟨U+202E⟩b⟨U+200B⟩c⟨U+0007⟩')
  })
  it('leaves other scripts, tabs and newlines', () => {
    expect(visible('Äpfel\t日本語\n😀')).toBe('Äpfel\t日本語\n😀')
  })
  it('makes one line', () => {
    expect(visibleLine(' a \n b\u2028')).toBe('a b⟨U+2028⟩')
  })
})

describe('format', () => {
  it.each([[0, '0 ms'], [380, '380 ms'], [2100, '2.1 s'], [59_600, '1 min'], [65_000, '1 min 5 s'], [3_900_000, '1 h 5 min']])('duration %i: %s', (ms, text) => {
    expect(duration(ms)).toBe(text)
  })
  it.each([[0, '0 s'], [-5, '0 s'], [1999, '1 s'], [12_400, '12 s'], [61_000, '1 min 1 s']])('seconds %i: %s', (ms, text) => {
    expect(seconds(ms)).toBe(text)
  })
  it.each([[999, '999'], [4100, '4.1k'], [2000, '2k'], [200_000, '200k'], [1_200_000, '1.2M']])('count %i: %s', (n, text) => {
    expect(count(n)).toBe(text)
  })
  it('has a dash for an unknown price', () => {
    expect([cost(undefined), cost(0), cost(0.0042), cost(0.5), cost(12)]).toEqual(['—', '$0', '$0.0042', '$0.500', '$12.00'])
  })
  it('groups by age', () => {
    const now = new Date(2025, 5, 15, 12)
    expect([0, 13, 40, 24 * 8, 24 * 60].map((h) => age(new Date(now.getTime() - h * 3_600_000).toISOString(), now))).toEqual([
      'Today', 'Yesterday', 'Last 7 days', 'Last 30 days', 'Older',
    ])
  })
})
