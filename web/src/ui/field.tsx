import { useId, type ReactNode } from 'react'
import { CircleAlert } from 'lucide-react'

interface Props {
  label: string
  help?: ReactNode
  error?: string
  children: (props: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: true }) => ReactNode
}

/** A labelled control with its explanation and its problem. */
export function Field({ label, help, error, children }: Props) {
  const id = useId()
  const described = [help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, 'aria-describedby': described || undefined, 'aria-invalid': error ? true : undefined })}
      {error && <FieldError id={`${id}-error`} text={error} />}
      {help && <p id={`${id}-help`} className="help">{help}</p>}
    </div>
  )
}

export function FieldError({ id, text, action }: { id?: string; text: string; action?: ReactNode }) {
  return (
    <p id={id} className="field-error">
      <CircleAlert size={14} aria-hidden="true" />
      <span>{text} {action}</span>
    </p>
  )
}
