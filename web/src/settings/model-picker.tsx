import { useState } from 'react'
import { useModels } from '../api/queries'
import type { ModelChoice } from '../api/types'
import { count } from '../lib/format'
import { Spinner } from '../ui/button'
import { Field } from '../ui/field'
import { ErrorNotice, Notice } from '../ui/notice'

interface Props {
  provider: string // empty: nobody can be asked which models there are
  label: string
  placeholder: string
  help?: string
  usual?: string // what is used when the field is empty
  value: string
  problem?: string
  quiet?: boolean // there is no key yet, so that the provider cannot be asked: that is no news
  onChange: (model: string) => void
}

/** A model by its name, with those that the provider has to choose from. */
export function ModelPicker({ provider, label, placeholder, help, usual, value, problem, quiet = false, onChange }: Props) {
  const models = useModels(provider)
  const [typed, setTyped] = useState(false)
  const fallback = models.data?.models?.find((m) => m.chosen)?.model ?? usual ?? ''
  const filter = typed ? value.toLowerCase() : ''
  const list = (models.data?.models ?? []).filter((m) => `${m.model} ${m.name ?? ''}`.toLowerCase().includes(filter))
  return (
    <div className="grid gap-2">
      <Field label={label} help={help} error={problem}>
        {(props) => (
          <input
            {...props}
            className="input mono"
            spellCheck={false}
            autoComplete="off"
            placeholder={fallback || placeholder}
            value={value}
            onChange={(e) => {
              setTyped(true)
              onChange(e.target.value)
            }}
          />
        )}
      </Field>
      {models.isLoading && <p className="help flex items-center gap-2"><Spinner /> Asking the provider which models it has</p>}
      {models.isError && !quiet && <ErrorNotice error={models.error} />}
      {models.data?.warning && !quiet && <Notice tone="wait">{models.data.warning}</Notice>}
      {list.length > 0 && (
        <div className="model-list" role="radiogroup" aria-label={`Models of ${provider}`}>
          {list.slice(0, 100).map((m) => (
            <ModelRow
              key={m.model}
              model={m}
              checked={m.model === (value || fallback)}
              onPick={() => {
                setTyped(false)
                onChange(m.model)
              }}
            />
          ))}
        </div>
      )}
      {list.length > 100 && <p className="help">{list.length - 100} more: type a part of the name.</p>}
    </div>
  )
}

function ModelRow({ model, checked, onPick }: { model: ModelChoice; checked: boolean; onPick: () => void }) {
  return (
    <label className="model-row">
      <input type="radio" name="model" checked={checked} onChange={onPick} />
      <span className="model-name">{model.name ?? <code>{model.model}</code>}</span>
      {model.tools === false && <span className="text-wait">no tools</span>}
      <span className="w-24 text-right">{model.context ? `${count(model.context)} context` : ''}</span>
      <span className="w-28 text-right" title="USD for a million tokens, in and out">{model.input !== undefined && model.output !== undefined ? `$${model.input} / $${model.output}` : ''}</span>
    </label>
  )
}
