import { useEffect, useState } from 'react'
import { APIError, sentence } from '../api/client'
import { queries, useSetup } from '../api/queries'
import type { Change, Setup } from '../api/types'
import { putSettings } from '../settings/form'
import { Button, Spinner } from '../ui/button'
import { ErrorNotice } from '../ui/notice'
import { Mark } from '../ui/mark'
import { useStore } from '../state/store'
import { DenoStep } from './deno-step'
import { ModelStep, type ModelPick } from './model-step'
import { WorkspaceStep } from './workspace-step'

/** From a blank profile to the first prompt: a folder, a model, Deno. */
export function FirstStart() {
  const setup = useSetup()
  return (
    <main className="setup">
      <div className="setup-column">
        <header className="mb-1 grid gap-1">
          <span className="text-accent"><Mark size={28} /></span>
          <h1 className="text-head font-semibold">Set up Tendril</h1>
          <p className="text-text2">An agent that builds the tools it needs, checks them, and keeps them in a folder of yours.</p>
        </header>
        {setup.isPending && <p className="flex items-center gap-2 text-text3"><Spinner /> Looking at what is here</p>}
        {setup.isError && <ErrorNotice error={setup.error} retry={<Button small onClick={() => void setup.refetch()}>Try again</Button>} />}
        {setup.data && <Steps setup={setup.data} />}
      </div>
    </main>
  )
}

type StepName = 'workspace' | 'model' | 'deno'

function Steps({ setup }: { setup: Setup }) {
  const [workspace, setWorkspace] = useState(setup.workspace.path)
  const [pick, setPick] = useState(() => found(setup))
  const progress = useStore((s) => s.setup)
  const deno = setup.deno.path !== undefined || progress?.state === 'done'
  const [open, setOpen] = useState<StepName | ''>(setup.workspace.error ? 'workspace' : 'model')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  useEffect(() => {
    if (progress?.state === 'done') void queries.invalidateQueries({ queryKey: ['settings', 'setup'] })
  }, [progress?.state])

  const start = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await putSettings(changes(workspace, pick!))
    } catch (e) {
      setError(e)
      setBusy(false)
    }
  }
  const toggle = (step: StepName) => () => setOpen(open === step ? '' : step)
  const missing = !pick ? 'Choose a model, or the demo.' : !deno ? 'Deno is missing: step 3 fetches it.' : ''
  return (
    <>
      <WorkspaceStep path={workspace} problem={setup.workspace.error} exists={setup.workspace.exists} open={open === 'workspace'} onToggle={toggle('workspace')} onChange={(path) => (setWorkspace(path), setOpen('model'))} />
      <ModelStep providers={setup.providers ?? []} pick={pick} open={open === 'model'} onToggle={toggle('model')} onPick={(p, done) => (setPick(p), done && setOpen(deno ? '' : 'deno'))} />
      <DenoStep deno={setup.deno} fetching={setup.fetching} open={open === 'deno' || (!deno && pick !== undefined)} onToggle={toggle('deno')} />
      {error !== undefined && <ErrorNotice error={error} />}
      {error !== undefined && problemsOf(error).map((text) => <p key={text} className="text-fail">{text}</p>)}
      <div className="flex items-center justify-end gap-3">
        <p className="help" role="status">{busy ? 'Starting the agent with these settings…' : missing}</p>
        <Button kind="primary" busy={busy} disabled={missing !== ''} onClick={() => void start()}>Start</Button>
      </div>
    </>
  )
}

/** What would be used without a choice. */
function found({ model, providers }: Setup): ModelPick | undefined {
  const provider = providers?.find((p) => p.id === model?.provider)
  return provider && { provider: provider.id, name: provider.name, settings: {} }
}

function changes(workspace: string, pick: ModelPick): Change[] {
  const list: Change[] = [
    { path: 'workspace', value: workspace },
    { path: 'model.provider', value: pick.provider },
  ]
  for (const [name, value] of Object.entries(pick.settings)) list.push({ path: `model.${pick.provider}.${name}`, value })
  return list
}

function problemsOf(error: unknown): string[] {
  const list = error instanceof APIError ? error.problems : []
  return list.map((p) => (p.path ? `${p.path} ${p.text}` : sentence(p.text)))
}
