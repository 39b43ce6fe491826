import { useState } from 'react'
import { request, sentence } from '../api/client'
import type { Place } from '../api/types'
import { Button } from '../ui/button'
import { Field } from '../ui/field'
import { Step } from './step'

interface Props {
  path: string
  exists: boolean
  problem?: string
  open: boolean
  onToggle: () => void
  onChange: (path: string) => void // of a folder that the host has accepted
}

export function WorkspaceStep({ path, exists, problem, open, onToggle, onChange }: Props) {
  const [text, setText] = useState(path)
  const [refused, setRefused] = useState(problem)
  const [busy, setBusy] = useState(false)
  const check = async () => {
    setBusy(true)
    try {
      const answer = await request<Place>('POST', '/setup/workspace', { path: text.trim() })
      setRefused(answer.error && sentence(answer.error))
      if (!answer.error) {
        setText(answer.path)
        onChange(answer.path)
      }
    } catch (e) {
      setRefused(sentence(e))
    }
    setBusy(false)
  }
  return (
    <Step number={1} title="Workspace" told={<code>{path}</code>} done={!refused} open={open} onToggle={onToggle}>
      <form
        className="flex items-start gap-2"
        onSubmit={(e) => {
          e.preventDefault()
          void check()
        }}
      >
        <div className="min-w-0 flex-1">
          <Field label="Folder" error={refused} help={exists && text === path ? 'Tendril works in this folder and keeps its capabilities there.' : 'It is made if it is not there. Tendril works in it and keeps its capabilities there.'}>
            {(props) => <input {...props} className="input mono" spellCheck={false} autoComplete="off" value={text} onChange={(e) => setText(e.target.value)} />}
          </Field>
        </div>
        <Button type="submit" className="mt-[25px]" busy={busy} disabled={!text.trim()}>Use it</Button>
      </form>
    </Step>
  )
}
