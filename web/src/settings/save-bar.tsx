import { CircleCheck } from 'lucide-react'
import { sentence } from '../api/client'
import { useTitle } from '../api/queries'
import { plural } from '../lib/format'
import { visibleLine } from '../lib/visible'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { FieldError } from '../ui/field'
import type { Form } from './form'

/** What was changed, and Save: the host tries the settings before it writes them. */
export function SaveBar({ form }: { form: Form }) {
  const { outcome, count, others } = form
  if (count === 0 && outcome.state !== 'saved') return null
  if (count === 0) {
    return (
      <div className="save-bar" role="status">
        <CircleCheck size={16} className="text-accent" aria-hidden="true" /> Saved. The agent was started again with these settings.
      </div>
    )
  }
  return (
    <div className="save-bar">
      <div className="min-w-0 flex-1" role="status">
        {outcome.state === 'failed' ? (
          <div className="grid gap-1">
            <FieldError text={sentence(outcome.error)} />
            {others.map((p) => <FieldError key={`${p.path}${p.text}`} text={p.path ? `${p.path} ${p.text}` : sentence(p.text)} />)}
          </div>
        ) : outcome.state === 'saving' ? (
          <span className="text-text2">Trying these settings with a second agent…</span>
        ) : (
          <span className="text-text2">{plural(count, 'change')}, not saved</span>
        )}
      </div>
      <Button kind="ghost" disabled={outcome.state === 'saving'} onClick={form.discard}>Discard</Button>
      <Button kind="primary" busy={outcome.state === 'saving'} onClick={() => void form.save()}>Save</Button>
      {outcome.state === 'ask' && (
        <Dialog
          title="Tendril is working"
          onClose={form.dismiss}
          actions={
            <>
              <Button autoFocus onClick={form.dismiss}>Not now</Button>
              <Button kind="danger" onClick={() => void form.save(true)}>Interrupt and save</Button>
            </>
          }
        >
          <p>The agent has to be started again for these settings, which interrupts what runs:</p>
          <ul className="list-disc pl-5">{outcome.running.map((id) => <SessionName key={id} id={id} />)}</ul>
          <p>What was done up to here stays, and the prompt can be sent again.</p>
        </Dialog>
      )}
    </div>
  )
}

function SessionName({ id }: { id: string }) {
  return <li>{visibleLine(useTitle(id) || 'A session without a title')}</li>
}
