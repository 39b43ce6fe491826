import { describe, expect, it } from 'vitest'
import { missingKey, plain, refusal, sentence } from './words'

describe('words', () => {
  it.each([
    ['the key is wrong', 'The key is wrong.'],
    ['http://127.0.0.1:7811/v1 does not accept the key (401)', 'http://127.0.0.1:7811/v1 does not accept the key (401).'],
    ['/etc is a system folder', '/etc is a system folder.'],
    ['count_words: it failed', 'count_words: it failed.'],
    ['Is it there?', 'Is it there?'],
  ])('a sentence of %s', (text, want) => expect(sentence(text)).toBe(want))

  it.each([
    ['missing; set it with: tendril config set model.azure.modelId my-deployment', 'Missing.'],
    ['not saved: /home/x/.tendril/config.json: model.azure.modelId: missing; set it with: tendril config set a b', 'model.azure.modelId: missing.'],
    ['openai/m needs a key, and OPENAI_API_KEY is not set; keep it with: tendril secret set OPENAI_API_KEY; or for this shell: export OPENAI_API_KEY=… (any text will do when http://h wants no key)', 'openai/m needs a key, and OPENAI_API_KEY is not set.'],
    ['the workspace cannot be created: mkdir /x: permission denied; choose another folder with --workspace', 'The workspace cannot be created: mkdir /x: permission denied.'],
    ['must be http or https; it looks like https://h/v1', 'Must be http or https; it looks like https://h/v1.'],
  ])('nothing of a terminal in %s', (text, want) => expect(plain(text)).toBe(want))

  it('finds the key that is missing', () => {
    expect(missingKey('openai/m needs a key, and OPENAI_API_KEY is not set; …')).toBe('OPENAI_API_KEY')
    expect(missingKey('the key was refused')).toBeUndefined()
  })

  it.each([
    ['permissions: a person did not allow net_b network access to any public host', 'you did not allow network access to any public host'],
    ['a person did not allow a network access to x.example, and the secret TOKEN', 'you did not allow network access to x.example, and the secret TOKEN'],
    ['a person did not allow a the secret TOKEN', 'you did not allow the secret TOKEN'],
    ['a person did not allow a network access to x.example, y.example\n\ndo it without', 'you did not allow network access to x.example, y.example\n\ndo it without'],
    ['there is no capability "net_b"; near it: net_a; list the capabilities, or register one', 'there is no such capability'],
    ['NotFound: there is no capability', 'NotFound: there is no capability'],
  ])('a refusal for a person: %s', (text, want) => expect(refusal(text)).toBe(want))
})
