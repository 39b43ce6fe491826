import { useState } from 'react'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { Field } from '../ui/field'
import { ErrorNotice } from '../ui/notice'
import { remove, rename } from './actions'

interface Props {
  id: string
  title: string
  onClose: () => void
}

/** Runs an action once, and keeps its error. */
function useAction(action: () => Promise<unknown>, done: () => void) {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const run = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await action()
      done()
    } catch (e) {
      setError(e)
      setBusy(false)
    }
  }
  return { busy, error, run }
}

export function RenameDialog({ id, title, onClose }: Props) {
  const [name, setName] = useState(title)
  const { busy, error, run } = useAction(() => rename(id, name.trim()), onClose)
  return (
    <Dialog
      title="Rename this session"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy} disabled={!name.trim()} onClick={() => void run()}>Rename</Button>
        </>
      }
    >
      <Field label="Title">
        {(props) => (
          <input
            {...props}
            className="input"
            autoFocus
            maxLength={200}
            value={name}
            onFocus={(e) => e.target.select()}
            onChange={(e) => setName(e.target.value)}
            onKeyDown={(e) => {
              if (e.key === 'Enter' && !e.nativeEvent.isComposing && e.keyCode !== 229 && name.trim()) void run()
            }}
          />
        )}
      </Field>
      {error !== undefined && <ErrorNotice error={error} />}
    </Dialog>
  )
}

export function DeleteDialog({ id, title, onClose, onDeleted }: Props & { onDeleted: () => void }) {
  const { busy, error, run } = useAction(() => remove(id), () => {
    onClose()
    onDeleted()
  })
  return (
    <Dialog
      title={`Delete “${title}”?`}
      onClose={onClose}
      actions={
        <>
          <Button autoFocus onClick={onClose}>Keep it</Button>
          <Button kind="danger" busy={busy} onClick={() => void run()}>Delete</Button>
        </>
      }
    >
      <p>The conversation is gone for good. Capabilities that were built in it, and files, stay.</p>
      {error !== undefined && <ErrorNotice error={error} />}
    </Dialog>
  )
}
