import { CircleCheck } from 'lucide-react'
import { Link } from 'wouter'
import { useProviders } from '../api/queries'
import type { Provider } from '../api/types'
import { plain } from '../lib/words'
import { useStore } from '../state/store'
import { Field } from '../ui/field'
import { ErrorNotice, Notice } from '../ui/notice'
import type { Form } from './form'
import { TextSetting } from './inputs'
import { ModelPicker } from './model-picker'
import { labels } from './providers'

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
      {problem ? <Notice tone="fail">{plain(problem)}</Notice> : used && <p className="text-text2">In use: <code>{used.name}</code>{used.reason && `, because ${used.reason}`}</p>}
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

function ProviderSettings({ form, provider }: { form: Form; provider: Provider }) {
  const block = `model.${provider.id}`
  const model = form.value(`${block}.modelId`)
  return (
    <>
      <p className="flex items-center gap-2 text-text2">
        {provider.found && <CircleCheck size={16} className="text-accent" aria-hidden="true" />}
        {provider.found ? (provider.reason ?? 'Found') : provider.keyEnv ? <>There is no key yet. <Link className="link-btn" href={`/settings/keys/${provider.keyEnv}`}>Store one</Link></> : 'Not found on this machine'}
      </p>
      {provider.needs?.map((need) => (
        <TextSetting key={need} form={form} path={`${block}.${need}`} {...labels(provider.id, need)} />
      ))}
      <ModelPicker
        {...labels(provider.id, 'modelId')}
        provider={provider.id}
        usual={provider.model}
        value={typeof model === 'string' ? model : ''}
        problem={form.problem(`${block}.modelId`)}
        onChange={(name) => form.set(`${block}.modelId`, name || null)}
      />
      {!provider.needs?.includes('baseURL') && (
        <TextSetting form={form} path={`${block}.baseURL`} label="Base URL" placeholder="the provider’s own" help="For a compatible endpoint or a proxy." />
      )}
    </>
  )
}
