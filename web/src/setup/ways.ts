// The ways to a model in the first start, and what was typed for each of them.

import type { Change, Provider, Setup } from '../api/types'
import { at } from '../settings/form'

/** A way to a model: a provider, or an OpenAI-compatible endpoint, which the settings know as openai with a base URL. */
export interface Way {
  id: string
  provider: string
  name: string
  found: boolean // it can be used as it is
  reason?: string
  keyEnv?: string // of a key that is still to be given
  needs: string[] // settings of the provider's block beside the model
  model?: string // what is used when none is typed
}

/** What was typed for a way: its settings by name, modelId and key among them. tested is the key that has passed a test. */
export type Typed = Record<string, string>

export interface Pick {
  choice: string // id of a way that was found, own, demo, or empty
  own: string // id of the way that is chosen below own
  typed: Record<string, Typed> // by the id of a way
}

export const demo: Way = { id: 'demo', provider: 'demo', name: 'Demo', found: true, needs: [] }
export const compatible = 'compatible'

export function ways(providers: Provider[]): Way[] {
  return providers.flatMap(({ id, name, found, reason, keyEnv, needs, model }) => {
    const key = found ? undefined : keyEnv
    const way: Way = { id, provider: id, name, found, reason, keyEnv: key, needs: needs ?? [], model }
    return id === 'openai' ? [way, { id: compatible, provider: id, name: 'OpenAI-compatible endpoint', found: false, keyEnv: key, needs: ['baseURL'] }] : [way]
  })
}

/** What the first start begins with: what a prompt would use now, and what the settings hold already. */
export function begin(setup: Setup, settings: unknown): Pick {
  const list = ways(setup.providers ?? [])
  const pick: Pick = { choice: '', own: list.find((w) => !w.found)?.id ?? '', typed: {} }
  for (const way of list) {
    const kept = ['modelId', ...way.needs].flatMap((name) => {
      const value = at(settings, `model.${way.provider}.${name}`)
      return typeof value === 'string' && value ? [[name, value] as const] : []
    })
    pick.typed[way.id] = Object.fromEntries(kept)
  }
  const elsewhere = Boolean(pick.typed[compatible]?.baseURL) // then the model of openai is that of the endpoint
  if (elsewhere) pick.typed.openai = {}
  else if (pick.typed[compatible]) pick.typed[compatible] = {}
  const used = setup.model?.provider ?? at(settings, 'model.provider') ?? list.find((w) => w.found)?.id
  if (used === 'demo') return { ...pick, choice: 'demo' }
  if (used === 'openai' && elsewhere) return { ...pick, choice: 'own', own: compatible }
  const way = list.find((w) => w.id === used)
  if (way) return way.found ? { ...pick, choice: way.id } : { ...pick, choice: 'own', own: way.id }
  return pick
}

export function chosen(pick: Pick, list: Way[]): Way | undefined {
  if (pick.choice === 'demo') return demo
  return list.find((w) => w.id === (pick.choice === 'own' ? pick.own : pick.choice))
}

/** What is used for a setting that was left empty. */
const usual: Record<string, string> = { host: 'http://localhost:11434' }

/** The fields that are still to be filled in. */
export function lacking(way: Way, typed: Typed = {}): string[] {
  if (way.provider === 'demo') return []
  const list = way.needs.filter((n) => !typed[n]?.trim() && !usual[n])
  if (way.keyEnv && !typed.key?.trim()) list.push('key')
  if (!typed.modelId?.trim() && !way.model) list.push('modelId')
  return list
}

/** The model that will be used. */
export const modelOf = (way: Way, typed: Typed = {}): string => typed.modelId?.trim() || way.model || ''

/** The settings that make a way the one that is used. */
export function changes(way: Way, typed: Typed = {}, settings?: unknown): Change[] {
  const block = `model.${way.provider}`
  const list: Change[] = [{ path: 'model.provider', value: way.provider }]
  if (way.provider === 'demo') return list
  list.push({ path: `${block}.modelId`, value: modelOf(way, typed) })
  for (const need of way.needs) {
    const value = typed[need]?.trim() || usual[need]
    if (value) list.push({ path: `${block}.${need}`, value })
  }
  if (way.id === 'openai' && at(settings, 'model.openai.baseURL')) list.push({ path: 'model.openai.baseURL', value: null })
  return list
}

/** Reports whether a key can be tried as it would be used. */
export const testable = (way: Way, typed: Typed = {}): boolean => way.keyEnv !== undefined && (!way.needs.includes('baseURL') || Boolean(typed.baseURL?.trim()))
