import { CircleAlert, CircleCheck } from 'lucide-react'
import { useState } from 'react'
import { path, request } from '../api/client'
import { plain, sentence } from '../lib/words'
import { queries, useKeys, useProviders } from '../api/queries'
import type { Key, KeptKey, KeyTest } from '../api/types'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { Field } from '../ui/field'
import { ErrorNotice, Notice } from '../ui/notice'
import { SecretInput } from '../ui/secret-input'
import type { Form } from './form'

const places = { environment: 'environment', keychain: 'keychain', file: 'file, not encrypted' }

/** What a key is tried with; what is left out is as it is saved. */
export interface KeyUse {
  value?: string
  baseURL?: string
  modelId?: string
}

export const testKey = (name: string, use: KeyUse) => request<KeyTest>('POST', path`/keys/${name}/test`, use)

export const storeKey = async (name: string, value: string) => {
  const stored = await request<KeptKey>('PUT', path`/keys/${name}`, { value })
  await queries.invalidateQueries({ queryKey: ['settings'] })
  return stored
}

interface Props {
  form?: Form
  wanted?: string // name of the key that is to be stored
}

/** The keys: stored here, and never shown again. */
export function Keys({ form, wanted }: Props) {
  const keys = useKeys()
  const typed = useTyped(form)
  return (
    <>
      <p className="text-text2">Keys are stored in the keychain where there is one. They are never shown again, and no capability sees them.</p>
      {keys.isError && <ErrorNotice error={keys.error} />}
      {keys.data?.length === 0 && <p className="text-text3">No key is stored yet.</p>}
      {keys.data && keys.data.length > 0 && (
        <ul className="rows">
          {keys.data.map((k) => <KeyRow key={k.name} entry={k} use={typed(k.name)} />)}
        </ul>
      )}
      <NewKey key={wanted} wanted={wanted} typed={typed} />
    </>
  )
}

/** What was changed and is not saved yet of the provider that a key is for: it is tried with that. */
function useTyped(form?: Form) {
  const providers = useProviders()
  return (name: string): Omit<KeyUse, 'value'> => {
    const id = (providers.data ?? []).find((p) => p.keyEnv === name)?.id
    const typed = (field: string) => {
      const path = `model.${id}.${field}`
      return form && path in form.changes ? String(form.changes[path] ?? '') : undefined
    }
    return { baseURL: typed('baseURL'), modelId: typed('modelId') }
  }
}

function KeyRow({ entry, use }: { entry: Key; use: Omit<KeyUse, 'value'> }) {
  const [asking, setAsking] = useState(false)
  const kept = entry.places ?? []
  const stored = kept.some((p) => p !== 'environment')
  const remove = async () => {
    await request('DELETE', path`/keys/${entry.name}`)
    setAsking(false)
    await queries.invalidateQueries({ queryKey: ['settings'] })
  }
  return (
    <li>
      <div className="min-w-0 flex-1">
        <code>{entry.name}</code>
        <p className="help">
          {kept.map((p) => places[p]).join(', ')}
          {entry.shadowed && '; the one in the environment is used'}
          {entry.problem && <span className="text-wait"> {sentence(entry.problem)}</span>}
        </p>
      </div>
      <TestButton name={entry.name} use={use} />
      <Button small disabled={!stored} title={stored ? undefined : 'It is in the environment: remove it there'} onClick={() => setAsking(true)}>Delete</Button>
      {asking && (
        <Dialog
          title={`Delete ${entry.name}?`}
          onClose={() => setAsking(false)}
          actions={
            <>
              <Button autoFocus onClick={() => setAsking(false)}>Keep it</Button>
              <Button kind="danger" onClick={() => void remove()}>Delete</Button>
            </>
          }
        >
          <p>It cannot be read back from here. What needs it then fails until a new one is stored.</p>
        </Dialog>
      )}
    </li>
  )
}

interface TestProps {
  name: string
  value?: string
  disabled?: boolean
  use?: Omit<KeyUse, 'value'> // that is not saved yet
  onPassed?: (value: string) => void
}

/** Tries a key with a real call: one that was typed, or the one that is stored. */
export function TestButton({ name, value, disabled = false, use, onPassed }: TestProps) {
  const [busy, setBusy] = useState(false)
  const [result, setResult] = useState<{ of: string; test: KeyTest }>()
  const of = JSON.stringify({ value, ...use })
  const test = async () => {
    setBusy(true)
    try {
      const test = await testKey(name, { value, ...use })
      setResult({ of, test })
      if (test.ok && value) onPassed?.(value)
    } catch (e) {
      setResult({ of, test: { ok: false, message: sentence(e) } })
    }
    setBusy(false)
  }
  const shown = result && result.of === of ? result.test : undefined
  return (
    <>
      <span role="status" className={`flex min-w-0 items-center gap-1.5 text-meta ${shown?.ok ? 'text-accent' : 'text-fail'}`}>
        {shown && (shown.ok ? <CircleCheck size={14} className="flex-none" aria-hidden="true" /> : <CircleAlert size={14} className="flex-none" aria-hidden="true" />)}
        {shown && plain(shown.message)}
      </span>
      <Button small busy={busy} disabled={disabled} onClick={() => void test()}>Test</Button>
    </>
  )
}

function NewKey({ wanted = '', typed }: { wanted?: string; typed: (name: string) => Omit<KeyUse, 'value'> }) {
  const providers = useProviders()
  const named = (providers.data ?? []).filter((p) => p.keyEnv)
  const [name, setName] = useState(wanted)
  const [value, setValue] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [stored, setStored] = useState<{ name: string; warning?: string }>()
  const key = (named.some((p) => p.keyEnv === name) && name) || named[0]?.keyEnv || ''
  const store = async () => {
    setBusy(true)
    setError(undefined)
    try {
      const { warning } = await storeKey(key, value.trim())
      setStored({ name: key, warning })
      setValue('')
    } catch (e) {
      setError(e)
    }
    setBusy(false)
  }
  return (
    <form
      className="grid gap-3"
      onSubmit={(e) => {
        e.preventDefault()
        if (value.trim()) void store()
      }}
    >
      <h2 className="text-title font-semibold">Store a key</h2>
      <Field label="For">
        {(props) => (
          <select {...props} className="input" value={key} onChange={(e) => setName(e.target.value)}>
            {named.map((p) => <option key={p.id} value={p.keyEnv}>{p.name} ({p.keyEnv})</option>)}
          </select>
        )}
      </Field>
      <Field label="Key">
        {(props) => <SecretInput {...props} value={value} onChange={(e) => setValue(e.target.value)} />}
      </Field>
      {error !== undefined && <ErrorNotice error={error} />}
      {stored && (
        <Notice tone="ok">
          <p>{stored.name} is stored.</p>
          {stored.warning && <p className="text-text2">{sentence(stored.warning.replace(stored.name, 'it'))}</p>}
        </Notice>
      )}
      <div className="flex items-center justify-end gap-2">
        <TestButton name={key} value={value.trim()} disabled={!value.trim()} use={typed(key)} />
        <Button kind="primary" small type="submit" busy={busy} disabled={!value.trim()}>Store</Button>
      </div>
    </form>
  )
}
