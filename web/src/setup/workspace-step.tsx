import { useState } from 'react'
import { request } from '../api/client'
import type { Place } from '../api/types'
import { plain } from '../lib/words'
import { useStore } from '../state/store'
import { Button } from '../ui/button'
import { Field } from '../ui/field'
import { Step } from './step'

interface Props {
  path: string // that was accepted last
  exists: boolean
  problem?: string
  open: boolean
  onToggle: () => void
  onChange: (path: string) => void // of a folder that the host has accepted
  onProblem: (text?: string) => void
}

export function WorkspaceStep({ path, exists, problem, open, onToggle, onChange, onProblem }: Props) {
  const [text, setText] = useState(path)
  const [busy, setBusy] = useState(false)
  const fixed = useStore((s) => s.state?.fixed?.includes('workspace') === true)
  const changed = text.trim() !== path
  const check = async () => {
    setBusy(true)
    onProblem()
    try {
      const answer = await request<Place>('POST', '/setup/workspace', { path: text.trim() })
      if (answer.error) onProblem(answer.error)
      else {
        setText(answer.path)
        onChange(answer.path)
      }
    } catch (e) {
      onProblem(e instanceof Error ? e.message : String(e))
    }
    setBusy(false)
  }
  const back = () => {
    setText(path)
    onProblem()
    onToggle()
  }
  const told = problem ? <span className="text-fail">{text.trim()} cannot be used</span> : changed ? `${text.trim()}: not taken over yet` : <code>{path}</code>
  return (
    <Step number={1} title="Workspace" told={told} done={!problem && !changed} failed={problem !== undefined} open={open} onToggle={onToggle}>
      <form
        className="grid gap-3"
        onSubmit={(e) => {
          e.preventDefault()
          void check()
        }}
      >
        <Field label="Folder" error={problem && plain(problem)} help={fixed ? 'Tendril was started with this folder. End it and start it without --workspace to choose another one.' : exists && !changed ? 'Tendril works in this folder and keeps its capabilities there.' : 'It is made if it is not there. Tendril works in it and keeps its capabilities there.'}>
          {(props) => <input {...props} disabled={fixed} className="input mono" spellCheck={false} autoComplete="off" value={text} onChange={(e) => (setText(e.target.value), onProblem())} />}
        </Field>
        <div className="flex justify-end gap-2">
          {changed && <Button small kind="ghost" onClick={back}>Cancel</Button>}
          <Button small type="submit" busy={busy} disabled={fixed || !text.trim()}>Use it</Button>
        </div>
      </form>
    </Step>
  )
}
