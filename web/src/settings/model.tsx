import { CircleCheck } from 'lucide-react'
import { useId, useState } from 'react'
import { Link } from 'wouter'
import { useModels, useProviders } from '../api/queries'
import type { ModelChoice, Provider } from '../api/types'
import { count } from '../lib/format'
import { useStore } from '../state/store'
import { Spinner } from '../ui/button'
import { Field } from '../ui/field'
import { ErrorNotice, Notice } from '../ui/notice'
import type { Form } from './form'
import { TextSetting } from './inputs'

/** The provider and the model. */
export function ModelSettings({ form }: { form: Form }) {
  const providers = useProviders()
  const used = useStore((s) => s.state?.model)
  const problem = useStore((s) => s.state?.modelError)
  const chosen = form.value('model.provider')
  const id = typeof chosen === 'string' ? chosen : ''
  const provider = providers.data?.find((p) => p.id === id)
  return (
    <>
      {problem ? <Notice tone="fail">{problem}</Notice> : used && <p className="text-text2">In use: <code>{used.name}</code>{used.reason && `, because ${used.reason}`}</p>}
      <Field label="Provider" error={form.problem('model.provider')} help={id === '' && 'The first one that is there: a key in the environment, AWS credentials, a running Ollama.'}>
        {(props) => (
          <select {...props} className="input" value={id} onChange={(e) => form.set('model.provider', e.target.value || null)}>
            <option value="">Whichever is found</option>
            {providers.data?.map((p) => <option key={p.id} value={p.id}>{p.name}{p.found ? ', found' : ''}</option>)}
            <option value="demo">Demo, without a model</option>
          </select>
        )}
      </Field>
      {providers.isError && <ErrorNotice error={providers.error} />}
      {provider && <ProviderSettings key={provider.id} form={form} provider={provider} />}
    </>
  )
}

const needs: Record<string, { label: string; placeholder: string; help?: string }> = {
  region: { label: 'Region', placeholder: 'us-east-1' },
  profile: { label: 'AWS profile', placeholder: 'default', help: 'Empty: as AWS chooses.' },
  host: { label: 'Server', placeholder: 'http://localhost:11434' },
  baseURL: { label: 'Base URL', placeholder: 'https://NAME.openai.azure.com/openai/v1' },
}

function ProviderSettings({ form, provider }: { form: Form; provider: Provider }) {
  const block = `model.${provider.id}`
  return (
    <>
      <p className="flex items-center gap-2 text-text2">
        {provider.found && <CircleCheck size={16} className="text-accent" aria-hidden="true" />}
        {provider.found ? (provider.reason ?? 'Found') : provider.keyEnv ? <>There is no key yet. <Link className="link-btn" href="/settings/keys">Store one</Link></> : 'Not found on this machine'}
      </p>
      {provider.needs?.map((need) => (
        <TextSetting key={need} form={form} path={`${block}.${need}`} {...(needs[need] ?? { label: need })} />
      ))}
      <ModelPicker form={form} provider={provider.id} path={`${block}.modelId`} />
      {!provider.needs?.includes('baseURL') && (
        <TextSetting form={form} path={`${block}.baseURL`} label="Base URL" placeholder="the provider’s own" help="For a compatible endpoint or a proxy." />
      )}
    </>
  )
}

/** A model by its name, with those that the provider has to choose from. */
function ModelPicker({ form, provider, path }: { form: Form; provider: string; path: string }) {
  const models = useModels(provider)
  const [typed, setTyped] = useState(false)
  const listId = useId()
  const value = form.value(path)
  const fallback = models.data?.models?.find((m) => m.chosen)?.model ?? ''
  const current = typeof value === 'string' ? value : ''
  const filter = typed ? current.toLowerCase() : ''
  const list = (models.data?.models ?? []).filter((m) => `${m.model} ${m.name ?? ''}`.toLowerCase().includes(filter))
  return (
    <div className="grid gap-2">
      <Field label="Model" error={form.problem(path)}>
        {(props) => (
          <input
            {...props}
            className="input mono"
            spellCheck={false}
            autoComplete="off"
            placeholder={fallback || 'name of a model'}
            value={current}
            onChange={(e) => {
              setTyped(true)
              form.set(path, e.target.value || null)
            }}
          />
        )}
      </Field>
      {models.isPending && <p className="help flex items-center gap-2"><Spinner /> Asking the provider which models it has</p>}
      {models.isError && <ErrorNotice error={models.error} />}
      {models.data?.warning && <Notice tone="wait">{models.data.warning}</Notice>}
      {list.length > 0 && (
        <div className="model-list" role="radiogroup" aria-label={`Models of ${provider}`} id={listId}>
          {list.slice(0, 100).map((m) => (
            <ModelRow
              key={m.model}
              model={m}
              checked={m.model === (current || fallback)}
              onPick={() => {
                setTyped(false)
                form.set(path, m.model)
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
      <span className="min-w-0 flex-1 truncate">{model.name ?? <code>{model.model}</code>}</span>
      {model.tools === false && <span className="text-wait">no tools</span>}
      <span className="w-24 text-right">{model.context ? `${count(model.context)} context` : ''}</span>
      <span className="w-28 text-right" title="USD for a million tokens, in and out">{model.input !== undefined && model.output !== undefined ? `$${model.input} / $${model.output}` : ''}</span>
    </label>
  )
}
