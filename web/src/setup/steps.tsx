import { useEffect, useState } from 'react'
import { queries } from '../api/queries'
import type { Setup } from '../api/types'
import { useStore } from '../state/store'
import { Button } from '../ui/button'
import { Notice } from '../ui/notice'
import { plain } from '../lib/words'
import { DenoStep } from './deno-step'
import { ModelStep } from './model-step'
import { useStart, type StepName } from './start'
import { begin, chosen, lacking, ways } from './ways'
import { WorkspaceStep } from './workspace-step'

/** The three steps, and Start. What is wrong stands at its step until something else is chosen there. */
export function Steps({ setup, settings }: { setup: Setup; settings: unknown }) {
  const [providers] = useState(setup.providers ?? []) // as they were found: a key that Start stores is not to move the choice
  const [workspace, setWorkspace] = useState(setup.workspace.path)
  const [pick, setPick] = useState(() => begin(setup, settings))
  const progress = useStore((s) => s.setup)
  const deno = setup.deno.path !== undefined || progress?.state === 'done'
  const [open, setOpen] = useState<StepName | ''>(setup.workspace.error ? 'workspace' : 'model')
  const { faults, busy, start, setFaults } = useStart(setup.workspace.error, setOpen)
  useEffect(() => {
    if (progress?.state === 'done') void queries.invalidateQueries({ queryKey: ['settings', 'setup'] })
  }, [progress?.state])

  const way = chosen(pick, ways(providers))
  const at = (step: StepName | 'start') => faults.filter((f) => f.step === step)
  const toggle = (step: StepName) => () => setOpen(open === step ? '' : step)
  const other = (step: StepName, text?: string) => setFaults([...faults.filter((f) => f.step !== step && f.step !== 'start'), ...(text ? [{ step, text }] : [])])
  const missing = at('workspace').length > 0
    ? 'Choose another folder in step 1.'
    : !way || lacking(way, pick.typed[way.id]).length > 0
      ? way ? 'Fill in what is missing in step 2, or choose the demo.' : 'Choose a model, or the demo.'
      : !deno ? 'Deno is missing: step 3 fetches it.' : ''
  return (
    <>
      <WorkspaceStep
        path={workspace}
        problem={at('workspace')[0]?.text}
        exists={setup.workspace.exists}
        open={open === 'workspace'}
        onToggle={toggle('workspace')}
        onChange={(path) => (setWorkspace(path), setOpen('model'))}
        onProblem={(text) => other('workspace', text)}
      />
      <ModelStep
        providers={providers}
        pick={pick}
        faults={at('model')}
        open={open === 'model'}
        onToggle={toggle('model')}
        onPick={(p) => (setPick(p), other('model'))}
        onDone={() => setOpen(deno ? '' : 'deno')}
      />
      <DenoStep deno={setup.deno} fetching={setup.fetching} faults={at('deno')} open={open === 'deno' || (!deno && pick.choice !== '')} onToggle={toggle('deno')} />
      {at('start').map((f) => <Notice key={f.text} tone="fail">{plain(f.text)}</Notice>)}
      <div className="flex items-center justify-end gap-3">
        <p className="help" role="status">{busy ? 'Starting the agent with these settings…' : missing}</p>
        <Button kind="primary" busy={busy} disabled={missing !== ''} onClick={() => void start(workspace, way!, pick.typed[way!.id], settings)}>Start</Button>
      </div>
    </>
  )
}
