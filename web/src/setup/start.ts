// Start: saves the settings and the key, and waits for an agent that is ready.

import { useEffect, useState } from 'react'
import { APIError } from '../api/client'
import type { Change, Fault, State } from '../api/types'
import { missingKey } from '../lib/words'
import { storeKey } from '../settings/keys'
import { putSettings } from '../settings/form'
import { useStore } from '../state/store'
import { changes, type Typed, type Way } from './ways'

export type StepName = 'workspace' | 'model' | 'deno'
export type StepFault = Fault & { step: StepName | 'start' }

const patience = 30_000 // ms that an agent may take to be ready with new settings

/** The screen goes away by itself once nothing is missing. Until then this knows what is wrong, and at which step. */
export function useStart(problem: string | undefined, show: (step: StepName) => void) {
  const [faults, setFaults] = useState<StepFault[]>(problem ? [{ step: 'workspace', text: problem }] : [])
  const [phase, setPhase] = useState<'' | 'saving' | 'waiting'>('')
  const failed = useStore((s) => s.agent?.status === 'failed')
  const stop = (list: StepFault[]) => {
    setFaults(list)
    setPhase('')
    const step = list[0]?.step
    if (step && step !== 'start') show(step)
  }
  const start = async (workspace: string, way: Way, typed: Typed | undefined, settings: unknown) => {
    setPhase('saving')
    setFaults([])
    try {
      const fixed = useStore.getState().state?.fixed ?? []
      const list = [{ path: 'workspace', value: workspace }, ...changes(way, typed, settings)].filter((c) => !isFixed(c.path, fixed))
      await save(list, way.keyEnv, typed?.key?.trim())
      setPhase('waiting')
    } catch (e) {
      stop(faultsOf(e))
    }
  }
  useEffect(() => {
    if (phase !== 'waiting') return
    const late = () => stop(lateFaults(useStore.getState().state, failed))
    if (failed) return late()
    const timer = setTimeout(late, patience)
    return () => clearTimeout(timer)
  }, [phase, failed])
  return { faults, busy: phase !== '', start, setFaults }
}

/**
 * Saves settings and a key. The key comes second, so that it is never used with settings that it was not meant for;
 * but where the host wants it first, the settings are refused for nothing else.
 */
async function save(list: Change[], keyEnv?: string, key = '') {
  try {
    if (list.length > 0) await putSettings(list)
  } catch (e) {
    const alone = e instanceof APIError && e.problems.length === 1
    if (!keyEnv || !key || !alone || missingKey(said(e)) !== keyEnv) throw e
    await storeKey(keyEnv, key)
    return putSettings(list)
  }
  if (keyEnv && key) await storeKey(keyEnv, key)
}

const said = (e: unknown) => (e instanceof Error ? e.message : String(e))

/** What the command line says goes before the settings, and is not changed here. */
const isFixed = (path: string, fixed: string[]) => (fixed.includes('workspace') && path === 'workspace') || (fixed.includes('model') && (path === 'model.provider' || path.endsWith('.modelId')))

/** What the host refused, each at the step that it is about, and once. */
export function faultsOf(error: unknown): StepFault[] {
  const problems = error instanceof APIError ? error.problems : []
  if (problems.length === 0) return [{ step: 'start', text: said(error) }]
  return problems.map((p) => ({ ...p, step: stepOf(p) }))
}

function stepOf({ path = '', text }: Fault): StepFault['step'] {
  const where = path || (/(?:^|: )(workspace|model|sandbox)\b/.exec(text)?.[1] ?? '')
  if (where.startsWith('workspace')) return 'workspace'
  if (where.startsWith('model')) return 'model'
  return where.startsWith('sandbox') ? 'deno' : 'start'
}

/** Why the agent is still not ready. */
export function lateFaults(state: Pick<State, 'workspace' | 'modelError' | 'deno'> | undefined, failed: boolean): StepFault[] {
  const list: StepFault[] = []
  if (state?.workspace.error) list.push({ step: 'workspace', text: state.workspace.error })
  else if (state && !state.workspace.exists) list.push({ step: 'workspace', text: `${state.workspace.path} is not there` })
  if (state?.modelError) list.push({ step: 'model', text: state.modelError })
  if (state?.deno.error) list.push({ step: 'deno', text: state.deno.error })
  if (list.length > 0) return list
  return [{ step: 'start', text: failed ? `the settings are saved, but the agent does not start: ${useStore.getState().agent?.error ?? 'it ended unexpectedly'}` : `the settings are saved, but the agent was not ready within ${patience / 1000} seconds; press Start to try again` }]
}
