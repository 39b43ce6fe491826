import { Check } from 'lucide-react'
import type { ReactNode } from 'react'

interface Props {
  number: number
  title: string
  told: ReactNode // what was chosen, while the step is closed
  done: boolean
  open: boolean
  onToggle: () => void
  children: ReactNode
}

/** A numbered step, of which only one is open. */
export function Step({ number, title, told, done, open, onToggle, children }: Props) {
  return (
    <section className={`step ${done ? 'step-done' : ''}`}>
      <button type="button" className="step-head" aria-expanded={open} onClick={onToggle}>
        <span className="step-number">{done ? <Check size={14} aria-hidden="true" /> : number}<span className="sr-only">{done ? 'done: ' : ''}</span></span>
        <span className="flex-none font-semibold">{title}</span>
        <span className="min-w-0 flex-1 truncate text-right text-text2">{!open && told}</span>
        {done && !open && <span className="link-btn flex-none">Change</span>}
      </button>
      {open && <div className="step-body">{children}</div>}
    </section>
  )
}
