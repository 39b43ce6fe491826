// What a tool call says of itself in one line.

import type { Step, Stop, Tool } from '../api/types'
import { plural } from '../lib/format'
import { visibleLine } from '../lib/visible'
import { hostName, refusal } from '../lib/words'

export type Phase = 'queued' | 'running' | 'waiting' | 'done' | 'failed' | 'skipped' | 'stopped' | 'interrupted'

/** How far a call is; one that its turn's end cut off was stopped or interrupted. */
export function phase(tool: Tool, end?: Stop): Phase {
  if (tool.status === 'done' || tool.status === 'failed' || tool.status === 'skipped') return tool.status
  if (end) return end === 'cancelled' ? 'stopped' : 'interrupted'
  return tool.status === 'pending' ? 'queued' : tool.status
}

type Verbs = Record<Phase, string>

type Kind = 'list' | 'register' | 'execute' | 'other'

/** Which of Tendril's three tools a call is of; a model may make up others. */
export function kind(tool: Tool): Kind {
  return kinds[tool.tool] ?? 'other'
}

const kinds: Record<string, Kind> = { listCapabilities: 'list', registerCapability: 'register', execute: 'execute' }

const verbs: Record<Kind, Verbs> = {
  list: { queued: 'Queued: list', running: 'Looking for', waiting: 'Waiting to list', done: 'Listed', failed: 'Failed to list', skipped: 'Not listed', stopped: 'Stopped listing', interrupted: 'Interrupted listing' },
  register: { queued: 'Queued: build', running: 'Building', waiting: 'Waiting to build', done: 'Built', failed: 'Could not build', skipped: 'Not built', stopped: 'Stopped building', interrupted: 'Interrupted building' },
  execute: { queued: 'Queued: run', running: 'Running', waiting: 'Waiting to run', done: 'Ran', failed: 'Failed:', skipped: 'Not run:', stopped: 'Stopped', interrupted: 'Interrupted' },
  other: { queued: 'Queued:', running: 'Running', waiting: 'Waiting:', done: 'Done:', failed: 'Failed:', skipped: 'Not run:', stopped: 'Stopped', interrupted: 'Interrupted' },
}

export interface Line {
  verb: string
  name: string // of the capability, or of what is called; empty for listings
  rest: string // what is listed; the version
  argument: string
  summary: string
}

export function describe(tool: Tool, now: Phase): Line {
  const line: Line = { verb: verbs[kind(tool)][now], name: visibleLine(tool.name ?? ''), rest: '', argument: '', summary: '' }
  if (kind(tool) === 'other' && !line.name) line.name = visibleLine(tool.tool)
  if (kind(tool) === 'list') {
    const total = number(tool.detail, 'total')
    line.rest = total === undefined ? 'capabilities' : plural(total, 'capability', 'capabilities')
    const query = text(tool.input, 'query')
    if (query) line.argument = `“${visibleLine(query)}”`
    const shown = number(tool.detail, 'shown')
    if (total && shown !== undefined && shown < total) line.summary = shown ? `${shown} match` : 'none match'
  } else if (kind(tool) === 'register') {
    line.rest = text(tool.detail, 'version')
    if (now === 'done') line.summary = checks(tool.steps ?? [])
  } else {
    line.argument = argument(tool.input)
    if (now === 'done') line.summary = firstLine(tool.output)
  }
  if (now === 'failed') line.summary = kind(tool) === 'register' ? failedStep(tool) : firstLine(refusal(tool.output ?? ''))
  if (now === 'skipped') line.summary = firstLine(tool.note)
  if (now === 'waiting') line.summary = 'waits for your answer'
  return line
}

/** What of the network a capability may reach that was built: "may reach api.example.com"; empty for none. */
export function reach(tool: Tool): string {
  const hosts = strings(field(tool.detail, 'grants'), 'net').map((h) => visibleLine(hostName(h)))
  if (hosts.length === 0) return ''
  return `may reach ${hosts.slice(0, 3).join(', ')}${hosts.length > 3 ? ` and ${hosts.length - 3} more` : ''}`
}

/** "6 of 6 checks", or how many of them passed. */
export function checks(steps: Step[]): string {
  const counted = steps.filter((s) => s.state !== 'skipped')
  if (counted.length === 0) return ''
  const passed = counted.filter((s) => s.state === 'passed' || s.state === 'warned').length
  const warned = counted.filter((s) => s.state === 'warned').length
  return `${passed} of ${plural(counted.length, 'check')}${warned ? `, ${plural(warned, 'warning')}` : ''}`
}

function failedStep(tool: Tool): string {
  const step = tool.steps?.find((s) => s.state === 'failed')
  const told = refusal(step?.note ?? tool.output ?? '')
  if (told.startsWith('you did not allow')) return firstLine(told)
  if (!step) return firstLine(tool.output)
  return step.note ? `${stepName(step.step)}: ${firstLine(step.note)}` : stepName(step.step)
}

const stepNames: Record<string, string> = { shape: 'Definition', modules: 'Imports', permissions: 'Permissions', types: 'Types', examples: 'Examples', graph: 'Imports' }

export const gate = ['shape', 'modules', 'permissions', 'types']

export const stepName = (step: string): string => stepNames[step] ?? visibleLine(step)

/** The arguments of a call, shortly. */
function argument(input: unknown): string {
  const args = field(input, 'args')
  if (args === undefined || args === null) return ''
  if (typeof args !== 'object') return short(args)
  return Object.entries(args).map(([key, value]) => `${visibleLine(key)}: ${short(value)}`).join(', ')
}

function short(value: unknown): string {
  const s = visibleLine(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
  return s.length > 80 ? `${s.slice(0, 79)}…` : s
}

function firstLine(s: string | undefined): string {
  const line = (s ?? '').split('\n').find((l) => l.trim() !== '') ?? ''
  return visibleLine(line.slice(0, 300))
}

export function field(value: unknown, key: string): unknown {
  return value !== null && typeof value === 'object' ? (value as Record<string, unknown>)[key] : undefined
}

export function text(value: unknown, key: string): string {
  const v = field(value, key)
  return typeof v === 'string' ? v : ''
}

function number(value: unknown, key: string): number | undefined {
  const v = field(value, key)
  return typeof v === 'number' ? v : undefined
}

export function strings(value: unknown, key: string): string[] {
  const v = field(value, key)
  return Array.isArray(v) ? v.filter((s): s is string => typeof s === 'string') : []
}
