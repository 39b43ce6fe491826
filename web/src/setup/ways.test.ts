import { describe, expect, it } from 'vitest'
import type { Provider, Setup } from '../api/types'
import { begin, changes, chosen, lacking, modelOf, testable, ways } from './ways'

const providers: Provider[] = [
  { id: 'openai', name: 'OpenAI', found: false, keyEnv: 'OPENAI_API_KEY', model: 'gpt-5.1', needs: [] },
  { id: 'azure', name: 'Azure OpenAI', found: false, keyEnv: 'AZURE_OPENAI_API_KEY', needs: ['baseURL'] },
  { id: 'bedrock', name: 'Amazon Bedrock', found: false, needs: ['region'] },
  { id: 'ollama', name: 'Ollama', found: true, model: 'qwen3:8b', needs: ['host'] },
]
const list = ways(providers)
const way = (id: string) => list.find((w) => w.id === id)!
const setup = { providers, needed: true } as Setup

describe('ways', () => {
  it('has the compatible endpoint beside the providers', () => {
    expect(list.map((w) => w.id)).toEqual(['openai', 'compatible', 'azure', 'bedrock', 'ollama'])
    expect(way('compatible')).toMatchObject({ provider: 'openai', keyEnv: 'OPENAI_API_KEY', needs: ['baseURL'] })
  })

  it('says what is still to be filled in', () => {
    expect(lacking(way('openai'))).toEqual(['key'])
    expect(lacking(way('compatible'), { baseURL: ' ', key: 'k' })).toEqual(['baseURL', 'modelId'])
    expect(lacking(way('azure'), { baseURL: 'u', key: 'k', modelId: 'd' })).toEqual([])
    expect(lacking(way('bedrock'))).toEqual(['region', 'modelId'])
    expect(lacking(way('ollama'))).toEqual([])
  })

  it('asks for no key that is there', () => {
    const found = ways(providers.map((p) => ({ ...p, found: true })))
    expect(found.filter((w) => w.keyEnv)).toEqual([])
  })

  it('makes settings that are whole, with the usual values for what was left empty', () => {
    expect(changes(way('compatible'), { baseURL: ' http://h/v1 ', modelId: 'm', key: 'secret' })).toEqual([
      { path: 'model.provider', value: 'openai' },
      { path: 'model.openai.modelId', value: 'm' },
      { path: 'model.openai.baseURL', value: 'http://h/v1' },
    ])
    expect(changes(way('ollama'))).toContainEqual({ path: 'model.ollama.host', value: 'http://localhost:11434' })
    expect(changes(way('openai'), {}, { model: { openai: { baseURL: 'http://h/v1' } } })).toContainEqual({ path: 'model.openai.baseURL', value: null })
    expect(modelOf(way('openai'))).toBe('gpt-5.1')
  })

  it('tests a key once it is known where it would be used', () => {
    expect(testable(way('openai'))).toBe(true)
    expect(testable(way('azure'))).toBe(false)
    expect(testable(way('azure'), { baseURL: 'u' })).toBe(true)
    expect(testable(way('compatible'), { baseURL: 'u' })).toBe(true)
    expect(testable(way('bedrock'))).toBe(false)
  })

  it('begins with what is there, and with what the settings hold', () => {
    expect(chosen(begin(setup, {}), list)?.id).toBe('ollama')
    const pick = begin(setup, { model: { provider: 'openai', openai: { baseURL: 'http://h/v1', modelId: 'm' } } })
    expect([pick.choice, pick.own, pick.typed.compatible, pick.typed.openai]).toEqual(['own', 'compatible', { modelId: 'm', baseURL: 'http://h/v1' }, {}])
    expect(begin({ ...setup, providers: [] }, {}).choice).toBe('')
    expect(begin(setup, { model: { provider: 'demo' } }).choice).toBe('demo')
  })
})
