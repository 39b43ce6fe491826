import { describe, expect, it } from 'vitest'
import { APIError } from '../api/client'
import { faultsOf, lateFaults } from './start'

const refused = (problems: unknown[], message = 'refused') => new APIError(422, message, 'refused', '', { problems })

describe('start', () => {
  it('puts what was refused at the step that it is about, once', () => {
    expect(faultsOf(refused([{ path: 'model.azure.modelId', text: 'missing' }, { path: 'workspace', text: 'no' }, { path: 'sandbox', text: 'none' }])).map((f) => f.step)).toEqual(['model', 'workspace', 'deno'])
    expect(faultsOf(refused([{ text: 'not saved: workspace "/etc" is a system folder' }]))[0]!.step).toBe('workspace')
    expect(faultsOf(refused([], 'the disk is full'))).toEqual([{ step: 'start', text: 'the disk is full' }])
  })

  it('says what is still wrong when the agent is not ready in time', () => {
    const state = { workspace: { path: '/w', exists: false }, modelError: 'no key', deno: { error: 'none' } }
    expect(lateFaults(state, false).map((f) => f.step)).toEqual(['workspace', 'model', 'deno'])
    expect(lateFaults({ workspace: { path: '/w', exists: true }, deno: {} }, false)).toMatchObject([{ step: 'start' }])
    expect(lateFaults(undefined, true)).toMatchObject([{ step: 'start', text: expect.stringContaining('does not start') }])
  })
})
