import { CircleCheck } from 'lucide-react'
import { Link } from 'wouter'
import { useProviders, useTitle } from '../api/queries'
import { plural } from '../lib/format'
import { visibleLine } from '../lib/visible'
import { missingKey, plain } from '../lib/words'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { FieldError } from '../ui/field'
import type { Form } from './form'
import { sectionOf } from './places'

/** What was changed, and Save: the host tries the settings before it writes them. */
export function SaveBar({ form }: { form: Form }) {
  const { outcome, count } = form
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
          <Failure form={form} error={outcome.error} />
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

/** Why nothing was saved, once: what is wrong with a field stands there. */
function Failure({ form, error }: { form: Form; error: unknown }) {
  const providers = useProviders()
  const texts = form.others.map((p) => p.text)
  const key = [...texts, String(error)].map(missingKey).find(Boolean)
  const provider = providers.data?.find((p) => p.keyEnv === key)
  if (key) return <FieldError text={`${provider?.name ?? key} needs a key, and there is none.`} action={<Link className="link-btn" href={`/settings/keys/${key}`}>Store one</Link>} />
  if (texts.length > 0) return <div className="grid gap-1">{[...new Set(texts)].map((text) => <FieldError key={text} text={plain(text)} />)}</div>
  const marked = Object.keys(form.changes).find((path) => form.problem(path))
  if (marked === undefined) return <FieldError text={plain(error)} />
  const { id, label } = sectionOf(marked)
  return <FieldError text="Not saved: see what is marked in" action={<Link className="link-btn" href={`/settings/${id}`}>{label}</Link>} />
}

function SessionName({ id }: { id: string }) {
  return <li>{visibleLine(useTitle(id) || 'A session without a title')}</li>
}
