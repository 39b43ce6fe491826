// The shapes of the host's API. They are written after its description; once
// schema.d.ts is generated from the host's OpenAPI, this file only names its parts.

export type AgentStatus = 'stopped' | 'starting' | 'ready' | 'restarting' | 'failed'

export interface Agent {
  status: AgentStatus
  since: string
  error?: string
  stderr?: string[]
  restarts: number
}

export interface Model {
  provider: string
  model: string
  name?: string
  reason?: string
  contextWindow?: number
}

export interface Deno {
  path?: string
  version?: string
  origin?: string
  error?: string
}

export interface Usage {
  contextWindow?: number
  contextTokens?: number
  input: number
  output: number
  cacheRead: number
  cacheWrite: number
  costUSD?: number
}

export interface PermissionOption {
  id: string
  name: string
  kind: 'allow_once' | 'allow_always' | 'reject_once'
}

export interface Permission {
  id: string
  session: string
  toolCall?: string
  title: string
  text: string
  capability: string
  hosts: string[]
  options: PermissionOption[]
}

export type Mode = 'policy' | 'ask'
export type Waiting = 'model' | 'sandbox' | 'you'

/** A session that is open in the agent. */
export interface SessionState {
  id: string
  title: string
  running: boolean
  since?: string
  waiting?: Waiting
  mode: Mode
  permissions: Permission[]
  usage?: Usage
}

export interface State {
  version: string
  epoch: string
  /** The id of the last event that this state contains. */
  event: number
  token: string
  agent: Agent
  workspace: { path: string; error?: string }
  model?: Model
  modelError?: string
  demo: boolean
  deno: Deno
  setupNeeded: boolean
  sessions: SessionState[]
}

export type StepState = 'running' | 'passed' | 'warned' | 'failed' | 'skipped'

export interface Step {
  step: string
  state: StepState
  note?: string
  durationMs?: number
}

export interface Tool {
  id: string
  kind: 'list' | 'register' | 'execute' | 'other'
  name?: string
  title: string
  status: 'pending' | 'running' | 'waiting' | 'done' | 'failed'
  input?: unknown
  output?: string
  lines?: string[]
  steps?: Step[]
  diff?: { path: string; old?: string; new: string }
  detail?: unknown
  started?: string
  durationMs?: number
}

export type Stop =
  | 'end_turn'
  | 'cancelled'
  | 'interrupted'
  | 'max_turns'
  | 'max_tokens'
  | 'timeout'
  | 'budget'
  | 'loop'
  | 'refusal'
  | 'error'

export interface Turn {
  number: number
  state: 'running' | 'finished'
  stop?: Stop
  error?: { kind: string; message: string; hint?: string }
  usage?: Usage
  costUSD?: number
  durationMs?: number
  modelCalls?: number
}

export interface Item {
  type: 'user' | 'agent' | 'thought' | 'tool' | 'notice' | 'turn'
  text?: string
  time?: string
  tool?: Tool
  turn?: Turn
}

export interface SessionSummary {
  id: string
  title: string
  folder?: string
  client?: string
  created: string
  updated: string
  turns: number
  costUSD?: number
  /** Where the query was found in it. */
  match?: string
}

export interface SessionList {
  sessions: SessionSummary[]
  next?: string
}

export interface Session {
  id: string
  title: string
  epoch: string
  event: number
  items: Item[]
  state: SessionState
}

/** Progress of the set-up. */
export interface SetupProgress {
  step: 'deno'
  state: 'running' | 'done' | 'failed'
  text: string
  done?: number
  total?: number
}

export interface Provider {
  id: string
  name: string
  found: boolean
  reason?: string
  keyEnv?: string
  /** Settings that it needs besides a model, such as region or baseURL. */
  needs: string[]
}

export interface Setup {
  needed: boolean
  workspace: { path: string; exists: boolean; error?: string }
  deno: Deno
  model?: Model
  modelError?: string
  providers: Provider[]
}

export interface Settings {
  path: string
  settings: Record<string, unknown>
  known: string[]
  warnings: Problem[]
}

export interface Problem {
  path?: string
  text: string
}

export interface Change {
  path: string
  value: unknown
}

export interface Key {
  name: string
  provider?: string
  places: ('environment' | 'keychain' | 'file')[]
  shadowed?: boolean
}

export interface KeyTest {
  ok: boolean
  message: string
  model?: string
}

export interface ModelChoice {
  model: string
  name?: string
  context?: number
  input?: number
  output?: number
  cacheRead?: number
  tools?: boolean
  chosen: boolean
}

export interface ModelList {
  provider: string
  source: string
  models: ModelChoice[]
  warning?: string
}

export interface Check {
  name: string
  state: 'ok' | 'warning' | 'failed'
  text: string
  hint?: string
}

export interface Doctor {
  ok: boolean
  checks: Check[]
}

/** The data of each type of server-sent event. */
export interface EventData {
  snapshot: State
  agent: Agent
  session: SessionState
  sessions: Record<string, never>
  item: { session: string; index: number; item: Item }
  append: { session: string; index: number; text: string }
  reset: { session: string }
  settings: Record<string, never>
  capabilities: Record<string, never>
  files: Record<string, never>
  setup: SetupProgress
}

export type EventType = keyof EventData
