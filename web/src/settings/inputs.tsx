import type { ReactNode } from 'react'
import { Field } from '../ui/field'
import type { Form } from './form'

interface Props {
  form: Form
  path: string
  label: string
  help?: ReactNode
  placeholder?: string
}

export function TextSetting({ form, path, label, help, placeholder, mono = true }: Props & { mono?: boolean }) {
  const value = form.value(path)
  return (
    <Field label={label} help={help} error={form.problem(path)}>
      {(props) => <input {...props} className={`input ${mono ? 'mono' : ''}`} spellCheck={false} autoComplete="off" placeholder={placeholder} value={typeof value === 'string' ? value : ''} onChange={(e) => form.set(path, e.target.value || null)} />}
    </Field>
  )
}

/** A number; empty means the default. scale turns what is shown into what is kept. */
export function NumberSetting({ form, path, label, help, placeholder, unit, scale = 1, step }: Props & { unit: string; scale?: number; step?: number }) {
  const value = form.value(path)
  const shown = typeof value === 'number' ? String(value / scale) : typeof value === 'string' ? value : ''
  return (
    <Field label={label} help={help} error={form.problem(path)}>
      {(props) => (
        <div className="unit">
          <input {...props} className="input" type="number" inputMode="decimal" step={step ?? 'any'} placeholder={placeholder} value={shown} onChange={(e) => form.set(path, e.target.value === '' ? null : Number(e.target.value) * scale)} />
          <span>{unit}</span>
        </div>
      )}
    </Field>
  )
}

/** Words, one a line. */
export function LinesSetting({ form, path, label, help, placeholder }: Props) {
  const value = form.value(path)
  const lines = Array.isArray(value) ? value.join('\n') : ''
  return (
    <Field label={label} help={help} error={form.problem(path)}>
      {(props) => (
        <textarea
          {...props}
          className="input mono"
          rows={Math.max(3, Math.min(10, lines.split('\n').length + 1))}
          spellCheck={false}
          placeholder={placeholder}
          defaultValue={lines}
          key={Array.isArray(form.changes[path]) ? 'edited' : lines}
          onChange={(e) => form.set(path, e.target.value.split('\n').map((s) => s.trim()).filter(Boolean))}
        />
      )}
    </Field>
  )
}

interface Choice {
  value: string
  label: string
  help: string
}

export function ChoiceSetting({ form, path, label, choices, fallback }: Omit<Props, 'help'> & { choices: Choice[]; fallback: string }) {
  const value = form.value(path) ?? fallback
  const problem = form.problem(path)
  return (
    <fieldset className="field">
      <legend className="field-label mb-1">{label}</legend>
      <div className="choices">
        {choices.map((c) => (
          <label key={c.value} className="choice">
            <input type="radio" name={path} checked={value === c.value} onChange={() => form.set(path, c.value)} />
            <span>
              {c.label}
              <span className="help block">{c.help}</span>
            </span>
          </label>
        ))}
      </div>
      {problem && <p className="field-error">{problem}</p>}
    </fieldset>
  )
}
