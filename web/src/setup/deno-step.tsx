import { useState } from 'react'
import { request } from '../api/client'
import { plain, sentence } from '../lib/words'
import type { Deno, Fault } from '../api/types'
import { useStore } from '../state/store'
import { Button } from '../ui/button'
import { ErrorNotice, Notice } from '../ui/notice'
import { Step } from './step'

/** Deno runs the capabilities: it is found, or fetched once. */
export function DenoStep({ deno, fetching, faults, open, onToggle }: { deno: Deno; fetching: boolean; faults: Fault[]; open: boolean; onToggle: () => void }) {
  const progress = useStore((s) => s.setup)
  const [asked, setAsked] = useState(false)
  const [error, setError] = useState<unknown>()
  const ready = deno.path !== undefined || progress?.state === 'done'
  const running = progress?.state === 'running' || ((asked || fetching) && progress === undefined)
  const fetch = async () => {
    setAsked(true)
    setError(undefined)
    try {
      await request('POST', '/setup/deno')
    } catch (e) {
      setError(e)
      setAsked(false)
    }
  }
  const told = ready ? `Deno ${deno.version ?? ''}${deno.origin ? `, ${deno.origin}` : ''}` : running ? 'Fetching…' : 'Not here yet'
  return (
    <Step number={3} title="Deno" told={told} done={ready} failed={faults.length > 0} more="Details" open={open || (!ready && running)} onToggle={onToggle}>
      {ready ? (
        <p className="text-text2">Runs every capability in a sandbox. <code>{deno.path}</code></p>
      ) : (
        <>
          <p className="text-text2">Every capability runs in Deno, inside a sandbox. It is fetched once, about 45 MB, and checked against the digest that Tendril knows.</p>
          {running && (
            <div className="grid gap-1" role="status">
              <progress className="progress" aria-label="Fetching Deno" />
              <p className="help">{progress ? sentence(progress.text) : 'Asked for it.'}</p>
            </div>
          )}
          {progress?.state === 'failed' && <Notice tone="fail">{progress.text}</Notice>}
          {error !== undefined && <ErrorNotice error={error} />}
          {!running && (
            <Button className="justify-self-start" onClick={() => void fetch()}>
              {progress?.state === 'failed' ? 'Try again' : 'Fetch Deno'}
            </Button>
          )}
        </>
      )}
      {faults.map((f) => <Notice key={f.text} tone="fail">{plain(f.text)}</Notice>)}
    </Step>
  )
}
