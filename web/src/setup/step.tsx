import { Check, CircleAlert } from 'lucide-react'
import type { ReactNode } from 'react'

interface Props {
  number: number
  title: string
  told: ReactNode // what was chosen, while the step is closed
  done: boolean
  failed?: boolean // something is wrong with what was chosen
  more?: string // what opening it is good for, once it is done
  open: boolean
  onToggle: () => void
  children: ReactNode
}

/** A numbered step, of which only one is open. */
export function Step({ number, title, told, done, failed = false, more = 'Change', open, onToggle, children }: Props) {
  const state = failed ? 'failed' : done ? 'done' : ''
  return (
    <section className={`step ${state && `step-${state}`}`}>
      <button type="button" className="step-head" aria-expanded={open} onClick={onToggle}>
        <span className="step-number">{failed ? <CircleAlert size={14} aria-hidden="true" /> : done ? <Check size={14} aria-hidden="true" /> : number}<span className="sr-only">{failed ? 'something is wrong: ' : done ? 'done: ' : ''}</span></span>
        <span className="flex-none font-semibold">{title}</span>
        <span className="min-w-0 flex-1 truncate text-right text-text2">{!open && told}</span>
        {(done || failed) && !open && <span className="link-btn flex-none">{more}</span>}
      </button>
      {open && <div className="step-body">{children}</div>}
    </section>
  )
}
