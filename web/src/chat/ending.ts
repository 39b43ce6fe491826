// How a turn ended, in words. A normal end needs none.

import type { Provider, Turn } from '../api/types'
import { sentence } from '../lib/words'

export interface Ending {
  tone: 'fail' | 'wait' | 'off'
  what: string
  why?: string
  next?: string
  keys?: string // name of the key that was refused; empty when it is not known
}

/** Errors of a provider begin with its id; a person knows it by its name. */
function named(message: string, providers: Provider[]): string {
  const provider = providers.find((p) => message.startsWith(`${p.id}: `))
  return provider ? provider.name + message.slice(provider.id.length) : message
}

export function ending(turn: Turn, providers: Provider[] = []): Ending | undefined {
  const why = turn.error && sentence(named(turn.error.message, providers))
  const next = turn.error?.hint && sentence(turn.error.hint)
  switch (turn.stop) {
    case undefined:
    case 'end_turn':
      return undefined
    case 'cancelled':
      return { tone: 'off', what: 'Stopped', why: 'You stopped this turn. What was done up to here stays.' }
    case 'interrupted':
      return { tone: 'wait', what: 'Interrupted', why: why ?? 'The agent ended before this turn did. What was done up to here stays.', next: next ?? 'Send it again, or go on from here.' }
    case 'max_turns':
      return { tone: 'wait', what: 'Stopped at the limit of model calls', why, next: next ?? 'Write “go on” to continue, or raise the limit in Settings.' }
    case 'max_tokens':
      return { tone: 'wait', what: 'The answer was cut at the limit of tokens', why, next: next ?? 'Write “go on” for the rest.' }
    case 'timeout':
      return { tone: 'wait', what: 'Stopped at the time limit', why, next: next ?? 'Write “go on” to continue, or raise the limit in Settings.' }
    case 'budget':
      return { tone: 'wait', what: 'Stopped at the budget', why, next: next ?? 'Raise the budget in Settings to continue.' }
    case 'loop':
      return { tone: 'wait', what: 'Stopped: the model repeated the same call', why, next: next ?? 'Say differently what you want, or send it again.' }
    case 'refusal':
      return { tone: 'wait', what: 'The model declined to answer', why, next }
    default:
      if (turn.error?.kind === 'credentials') {
        const id = turn.error.message.split(':')[0]
        const key = /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/.exec(turn.error.hint ?? '')?.[0] ?? providers.find((p) => p.id === id)?.keyEnv
        return { tone: 'fail', what: 'The provider refused the key', why, next: key ? undefined : next, keys: key }
      }
      return { tone: 'fail', what: 'This turn failed', why, next }
  }
}
