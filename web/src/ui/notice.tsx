import { CircleAlert, CircleCheck, Info, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { APIError } from '../api/client'
import { sentence } from '../lib/words'

type Tone = 'info' | 'ok' | 'wait' | 'fail'

const icons = { info: Info, ok: CircleCheck, wait: TriangleAlert, fail: CircleAlert }

/** Something to know, in place: an icon, words, and perhaps what to do. */
export function Notice({ tone = 'info', children, action }: { tone?: Tone; children: ReactNode; action?: ReactNode }) {
  const Icon = icons[tone]
  return (
    <div className={`notice notice-${tone}`} role={tone === 'fail' ? 'alert' : undefined}>
      <Icon size={16} aria-hidden="true" className="notice-icon" />
      <div className="notice-body">{children}</div>
      {action && <div className="notice-action">{action}</div>}
    </div>
  )
}

/** An error with what to do next. */
export function ErrorNotice({ error, retry }: { error: unknown; retry?: ReactNode }) {
  const hint = error instanceof APIError ? error.hint : ''
  return (
    <Notice tone="fail" action={retry}>
      <p>{sentence(error)}</p>
      {hint && <p className="text-text2">{sentence(hint)}</p>}
    </Notice>
  )
}
