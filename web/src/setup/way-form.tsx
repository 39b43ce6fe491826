import { TestButton } from '../settings/keys'
import { ModelPicker } from '../settings/model-picker'
import { keyPages, labels } from '../settings/providers'
import { Button } from '../ui/button'
import { Field } from '../ui/field'
import { SecretInput } from '../ui/secret-input'
import { compatible, lacking, modelOf, testable, type Typed, type Way } from './ways'

interface Props {
  way: Way
  others: Way[] // among which one can choose; empty: there is nothing to choose
  typed: Typed
  problem: (field: string) => string | undefined
  onWay: (id: string) => void
  onType: (values: Typed) => void
  onDone: () => void
}

/** All that a way to a model needs, its model included. */
export function WayForm({ way, others, typed, problem, onWay, onType, onDone }: Props) {
  const missing = lacking(way, typed)
  const key = typed.key?.trim() ?? ''
  return (
    <form
      className="grid gap-3"
      onSubmit={(e) => {
        e.preventDefault()
        if (missing.length === 0) onDone()
      }}
    >
      {others.length > 0 && (
        <Field label="Provider">
          {(props) => (
            <select {...props} className="input" value={way.id} onChange={(e) => onWay(e.target.value)}>
              {others.map((w) => <option key={w.id} value={w.id}>{w.name}</option>)}
            </select>
          )}
        </Field>
      )}
      {way.needs.map((need) => {
        const { label, placeholder, help } = labels(way.id, need)
        return (
          <Field key={need} label={label} help={help} error={problem(need)}>
            {(props) => <input {...props} className="input mono" spellCheck={false} autoComplete="off" placeholder={placeholder} value={typed[need] ?? ''} onChange={(e) => onType({ [need]: e.target.value })} />}
          </Field>
        )
      })}
      {way.keyEnv && (
        <Field label="Key" help={<KeyHelp way={way} tests={testable(way, typed)} />}>
          {(props) => <SecretInput {...props} value={typed.key ?? ''} onChange={(e) => onType({ key: e.target.value })} />}
        </Field>
      )}
      {way.id === compatible && !way.keyEnv && <p className="help">OPENAI_API_KEY is set, and is sent to this endpoint.</p>}
      <ModelPicker {...labels(way.id, 'modelId')} key={way.id} provider={way.needs.includes('baseURL') ? '' : way.provider} quiet={!way.found} usual={way.model} value={typed.modelId ?? ''} problem={problem('modelId')} onChange={(modelId) => onType({ modelId })} />
      <div className="flex flex-wrap items-center justify-end gap-2">
        {way.keyEnv && testable(way, typed) && <TestButton name={way.keyEnv} value={key} use={{ baseURL: typed.baseURL?.trim() ?? '', modelId: modelOf(way, typed) }} disabled={!key} onPassed={(tested) => onType({ tested })} />}
        <Button small type="submit" disabled={missing.length > 0}>Use it</Button>
      </div>
    </form>
  )
}

function KeyHelp({ way, tests }: { way: Way; tests: boolean }) {
  const page = keyPages[way.id]
  return (
    <>
      {page && <><a className="link-btn" href={page} target="_blank" rel="noopener noreferrer">Make one at {way.name}</a>. </>}
      {way.id === compatible && 'Any word will do for a server that wants none. '}
      It is stored in the keychain where there is one. {tests && 'Test makes a real call.'}
    </>
  )
}
