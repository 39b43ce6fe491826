// The settings as they are being edited: what the host has, and what was changed here.

import { useCallback, useState } from 'react'
import { APIError, request } from '../api/client'
import { queries, useSettings } from '../api/queries'
import type { Change, Fault, Settings } from '../api/types'
import { plain } from '../lib/words'

type Outcome = { state: 'idle' | 'saving' | 'saved' } | { state: 'failed'; error: unknown } | { state: 'ask'; running: string[] }

export interface Form {
  data: Settings
  changes: Record<string, unknown>
  count: number
  outcome: Outcome
  value: (path: string) => unknown
  set: (path: string, value: unknown) => void
  problem: (path: string) => string | undefined
  others: Fault[] // about settings that are not in changes
  discard: () => void
  save: (interrupt?: boolean) => Promise<void>
  dismiss: () => void
}

/** The value at a path such as model.anthropic.modelId. */
export function at(settings: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (value !== null && typeof value === 'object' ? (value as Record<string, unknown>)[key] : undefined), settings)
}

const equal = (a: unknown, b: unknown) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null)

/** Sends changes: the host tries them, and writes all of them or none. */
export const putSettings = (changes: Change[], interrupt = false) => request<{ warnings: Fault[] }>('PUT', '/settings', { changes, interrupt })

export function useForm(): { form?: Form; query: ReturnType<typeof useSettings> } {
  const query = useSettings()
  const [changes, setChanges] = useState<Record<string, unknown>>({})
  const [problems, setProblems] = useState<Fault[]>([])
  const [outcome, setOutcome] = useState<Outcome>({ state: 'idle' })
  const data = query.data

  const set = useCallback(
    (path: string, value: unknown) => {
      setOutcome({ state: 'idle' })
      setProblems((list) => list.filter((p) => p.path !== path))
      setChanges((before) => {
        const { [path]: _, ...rest } = before
        return equal(value, at(data?.settings, path)) ? rest : { ...rest, [path]: value ?? null }
      })
    },
    [data],
  )
  const save = async (interrupt = false) => {
    setOutcome({ state: 'saving' })
    setProblems([])
    try {
      await putSettings(Object.entries(changes).map(([path, value]) => ({ path, value })), interrupt)
      await queries.invalidateQueries({ queryKey: ['settings'] })
      setChanges({})
      setOutcome({ state: 'saved' })
    } catch (error) {
      if (error instanceof APIError && error.code === 'running') return setOutcome({ state: 'ask', running: runningOf(error) })
      if (error instanceof APIError) setProblems(error.problems)
      setOutcome({ state: 'failed', error })
    }
  }
  const discard = () => {
    setChanges({})
    setProblems([])
    setOutcome({ state: 'idle' })
  }
  if (!data) return { query }
  const form: Form = {
    data,
    changes,
    count: Object.keys(changes).length,
    outcome,
    value: (path) => (path in changes ? changes[path] : at(data.settings, path)),
    set,
    problem: (path) => problems.filter((p) => p.path === path).map((p) => plain(p.text))[0],
    others: problems.filter((p) => !p.path || !(p.path in changes)),
    discard,
    save,
    dismiss: () => setOutcome({ state: 'idle' }),
  }
  return { form, query }
}

function runningOf(error: APIError): string[] {
  const list = error.body.sessions
  if (!Array.isArray(list)) return []
  return list.filter((id): id is string => typeof id === 'string')
}
