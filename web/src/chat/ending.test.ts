import { describe, expect, it } from 'vitest'
import type { Provider, Tool, Turn } from '../api/types'
import { describe as line, reach } from './describe'
import { ending } from './ending'

const openai: Provider = { id: 'openai', name: 'OpenAI', found: true, keyEnv: 'OPENAI_API_KEY', needs: [] }
const failed = (kind: string, message: string, hint?: string) => ending({ number: 1, stop: 'error', error: { kind, message, hint } } as Turn, [openai])

describe('ending', () => {
  it('names the provider, and the key that was refused', () => {
    expect(failed('credentials', 'openai: the credentials were refused', 'check OPENAI_API_KEY')).toMatchObject({ why: 'OpenAI: the credentials were refused.', keys: 'OPENAI_API_KEY', next: undefined })
    expect(failed('credentials', 'openai: the credentials were refused')).toMatchObject({ keys: 'OPENAI_API_KEY' })
    expect(failed('credentials', 'bedrock: the credentials have expired', 'log in again')).toMatchObject({ keys: undefined, next: 'Log in again.' })
    expect(failed('overloaded', 'it is overloaded')?.keys).toBeUndefined()
  })
})

describe('a tool call', () => {
  const build = (more: Partial<Tool>): Tool => ({ id: '1', tool: 'registerCapability', name: 'net', status: 'done', steps: [{ step: 'types', state: 'passed' }], ...more })
  it('says what a capability may reach that was built', () => {
    expect(reach(build({ detail: { grants: { net: ['api.example.com', '*'] } } }))).toBe('may reach api.example.com, any public host')
    expect(reach(build({ detail: { grants: { net: ['a', 'b', 'c', 'd', 'e'] } } }))).toBe('may reach a, b, c and 2 more')
    expect(reach(build({ detail: { grants: { net: [] } } }))).toBe('')
  })
  it('tells a person of their own refusal', () => {
    const steps: Tool['steps'] = [{ step: 'permissions', state: 'failed', note: 'a person did not allow net network access to any public host' }]
    expect(line(build({ status: 'failed', steps }), 'failed').summary).toBe('you did not allow network access to any public host')
    expect(line({ id: '1', tool: 'execute', name: 'net', status: 'failed', output: 'there is no capability "net"; near it: nat; list the capabilities, or register one' }, 'failed').summary).toBe('there is no such capability')
  })
})
