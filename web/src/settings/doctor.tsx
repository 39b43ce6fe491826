import { CircleAlert, CircleCheck, TriangleAlert } from 'lucide-react'
import { useDoctor } from '../api/queries'
import type { Check } from '../api/types'
import { visible } from '../lib/visible'
import { Button, Spinner } from '../ui/button'
import { CopyButton } from '../ui/copy'
import { ErrorNotice } from '../ui/notice'

const icons = { ok: CircleCheck, warning: TriangleAlert, failed: CircleAlert }
const tones = { ok: 'text-accent', warning: 'text-wait', failed: 'text-fail' }

/** Everything checked, and what to do about it. */
export function Doctor() {
  const doctor = useDoctor()
  const checks = doctor.data?.checks ?? []
  return (
    <>
      <div className="flex items-center gap-3">
        <p className="flex-1 text-text2" role="status">
          {doctor.isFetching ? <span className="flex items-center gap-2"><Spinner /> Checking: a small program runs in the sandbox</span> : doctor.data?.ok ? 'All is well.' : doctor.data && 'Something needs you.'}
        </p>
        {checks.length > 0 && <CopyButton label="Copy report" text={checks.map(line).join('\n')} />}
        <Button small disabled={doctor.isFetching} onClick={() => void doctor.refetch()}>Check again</Button>
      </div>
      {doctor.isError && <ErrorNotice error={doctor.error} />}
      {checks.length > 0 && (
        <ul className="rows">
          {checks.map((c) => {
            const Icon = icons[c.state]
            return (
              <li key={c.name} className="!items-start">
                <Icon size={16} className={`mt-[3px] flex-none ${tones[c.state]}`} aria-hidden="true" />
                <span className="w-24 flex-none font-medium">{c.name}<span className="sr-only">: {c.state}</span></span>
                <div className="min-w-0 flex-1">
                  <p>{visible(c.text)}</p>
                  {c.hint && <p className="text-text2">{visible(c.hint)}</p>}
                </div>
              </li>
            )
          })}
        </ul>
      )}
    </>
  )
}

const line = (c: Check) => `${c.state.padEnd(8)} ${c.name}: ${c.text}${c.hint ? ` (${c.hint})` : ''}`
