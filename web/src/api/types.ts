// The shapes of the host's API, as `npm run types` generates them from its OpenAPI, and the
// events, which OpenAPI cannot describe. All other files take them from here.

import type { components } from './schema'

type Schemas = components['schemas']

export type Agent = Schemas['Agent']
export type AgentStatus = Agent['status']
export type Capability = Schemas['CapabilityInfo']
export type Change = { path: string; value: unknown }
export type Check = Schemas['Check']
export type Deno = Schemas['Deno']
export type Doctor = Schemas['Diagnosis']
export type Fault = Schemas['Fault']
export type Item = Schemas['Item']
export type Key = Schemas['Key']
export type KeyList = Schemas['KeyList']
export type KeyTest = Schemas['KeyTest']
export type KeptKey = Schemas['KeptKey']
export type Mode = SessionState['mode']
export type ModelChoice = Schemas['ModelInfo']
export type ModelList = Schemas['ModelList']
export type Permission = Schemas['Permission']
export type PermissionOption = Schemas['Option']
export type Place = Schemas['Place']
export type Problem = Schemas['Problem']
export type Provider = Schemas['Provider']
export type ProviderList = Schemas['ProviderList']
export type Session = Schemas['Conversation']
export type SessionList = Schemas['SessionList']
export type SessionState = Schemas['SessionState']
export type SessionSummary = Schemas['SessionInfo']
export type Settings = Schemas['Settings']
export type Setup = Schemas['SetupState']
export type SetupProgress = Schemas['SetupProgress']
export type State = Schemas['State']
export type Step = Schemas['Step']
export type Stop = Turn['stop']
export type Tool = Schemas['Tool']
export type Turn = Schemas['Turn']
export type Usage = Schemas['Usage']

/** The data of each type of server-sent event. */
export interface EventData {
  snapshot: State
  agent: Agent
  session: SessionState
  sessions: object
  item: Schemas['ItemEvent']
  append: Schemas['AppendEvent']
  reset: Schemas['ResetEvent']
  settings: object
  capabilities: object
  files: object
  setup: SetupProgress
}

export type EventType = keyof EventData
