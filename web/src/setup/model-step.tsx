import { useState } from 'react'
import { useModels } from '../api/queries'
import type { Provider } from '../api/types'
import { storeKey, TestButton } from '../settings/keys'
import { Button } from '../ui/button'
import { Field } from '../ui/field'
import { ErrorNotice } from '../ui/notice'
import { Step } from './step'

/** A provider and its settings, such as region and modelId. */
export interface ModelPick {
  provider: string
  name: string
  settings: Record<string, string>
}

interface Props {
  providers: Provider[]
  pick?: ModelPick
  open: boolean
  onToggle: () => void
  onPick: (pick: ModelPick | undefined, done: boolean) => void
}

const demo: ModelPick = { provider: 'demo', name: 'Demo', settings: {} }

export function ModelStep({ providers, pick, open, onToggle, onPick }: Props) {
  const [other, setOther] = useState(false)
  const found = providers.filter((p) => p.found)
  const missing = providers.filter((p) => !p.found)
  const choose = (p: ModelPick) => {
    setOther(false)
    onPick(p, false)
  }
  const model = pick?.settings.modelId
  return (
    <Step number={2} title="Model" told={pick ? `${pick.name}${model ? `, ${model}` : ''}` : ''} done={pick !== undefined} open={open} onToggle={onToggle}>
      <div className="choices" role="radiogroup" aria-label="Model">
        {found.map((p) => (
          <Choice key={p.id} name={p.name} help={p.reason ?? 'Found'} checked={!other && pick?.provider === p.id} onChoose={() => choose({ provider: p.id, name: p.name, settings: {} })} />
        ))}
        <Choice name="Another provider" help={found.length > 0 ? 'With a key, or a server of your own' : 'Nothing was found on this machine: no key in the environment, no AWS credentials, no Ollama'} checked={other} onChoose={() => (setOther(true), onPick(undefined, false))} />
        <Choice name="Demo" help="Without a model: three scripted prompts that build and run real capabilities" checked={!other && pick?.provider === 'demo'} onChoose={() => choose(demo)} />
      </div>
      {other && <OtherProvider providers={missing.length > 0 ? missing : providers} onDone={(p) => (setOther(false), onPick(p, true))} />}
      {!other && pick && pick.provider !== 'demo' && <ModelChoice key={pick.provider} pick={pick} onPick={(p) => onPick(p, false)} />}
    </Step>
  )
}

function Choice({ name, help, checked, onChoose }: { name: string; help: string; checked: boolean; onChoose: () => void }) {
  return (
    <label className="choice">
      <input type="radio" name="setup-model" checked={checked} onChange={onChoose} />
      <span>
        {name}
        <span className="help block">{help}</span>
      </span>
    </label>
  )
}

/** Which of the provider's models: its usual one, unless another is chosen. */
function ModelChoice({ pick, onPick }: { pick: ModelPick; onPick: (pick: ModelPick) => void }) {
  const models = useModels(pick.provider)
  const list = models.data?.models ?? []
  if (list.length === 0) return null
  const usual = list.find((m) => m.chosen)?.model ?? ''
  return (
    <Field label="Model">
      {(props) => (
        <select {...props} className="input" value={pick.settings.modelId ?? usual} onChange={(e) => onPick({ ...pick, settings: { ...pick.settings, modelId: e.target.value } })}>
          {!usual && <option value="">The provider’s usual one</option>}
          {list.map((m) => <option key={m.model} value={m.model}>{m.name ?? m.model}{m.tools === false ? ' (cannot use tools)' : ''}</option>)}
        </select>
      )}
    </Field>
  )
}

const labels: Record<string, [label: string, placeholder: string]> = {
  region: ['Region', 'us-east-1'],
  profile: ['AWS profile, if not the default', ''],
  host: ['Server', 'http://localhost:11434'],
  baseURL: ['Base URL', 'https://NAME.openai.azure.com/openai/v1'],
}

function OtherProvider({ providers, onDone }: { providers: Provider[]; onDone: (pick: ModelPick) => void }) {
  const [id, setId] = useState(providers[0]?.id ?? '')
  const [key, setKey] = useState('')
  const [settings, setSettings] = useState<Record<string, string>>({})
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const provider = providers.find((p) => p.id === id)
  if (!provider) return null
  const done = async () => {
    setBusy(true)
    setError(undefined)
    try {
      if (provider.keyEnv) await storeKey(provider.keyEnv, key.trim())
      onDone({ provider: id, name: provider.name, settings })
    } catch (e) {
      setError(e)
      setBusy(false)
    }
  }
  const lacking = (provider.keyEnv && !key.trim()) || (provider.needs ?? []).some((n) => n !== 'profile' && !settings[n])
  return (
    <form
      className="grid gap-3"
      onSubmit={(e) => {
        e.preventDefault()
        if (!lacking) void done()
      }}
    >
      <Field label="Provider">
        {(props) => (
          <select {...props} className="input" value={id} onChange={(e) => (setId(e.target.value), setSettings({}))}>
            {providers.map((p) => <option key={p.id} value={p.id}>{p.name}</option>)}
          </select>
        )}
      </Field>
      {provider.needs?.map((need) => (
        <Field key={need} label={labels[need]?.[0] ?? need}>
          {(props) => <input {...props} className="input mono" spellCheck={false} autoComplete="off" placeholder={labels[need]?.[1]} value={settings[need] ?? ''} onChange={(e) => setSettings({ ...settings, [need]: e.target.value })} />}
        </Field>
      ))}
      {provider.keyEnv && (
        <Field label="Key" help="Kept in the keychain where there is one. Test makes a real call.">
          {(props) => <input {...props} className="input mono" type="password" autoComplete="off" spellCheck={false} value={key} onChange={(e) => setKey(e.target.value)} />}
        </Field>
      )}
      {error !== undefined && <ErrorNotice error={error} />}
      <div className="flex items-center justify-end gap-2">
        {provider.keyEnv && <TestButton name={provider.keyEnv} value={key.trim()} disabled={!key.trim()} />}
        <Button small type="submit" busy={busy} disabled={Boolean(lacking)}>Use it</Button>
      </div>
    </form>
  )
}
