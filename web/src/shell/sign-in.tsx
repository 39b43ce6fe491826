import { useState } from 'react'
import { request } from '../api/client'
import { Button } from '../ui/button'
import { Field } from '../ui/field'
import { ErrorNotice } from '../ui/notice'
import { Mark } from '../ui/mark'

/** The host does not know this window: a new link is needed, or the password. */
export function SignIn({ login }: { login?: string }) {
  return (
    <main className="centred">
      <span className="text-accent">
        <Mark size={32} />
      </span>
      <h1 className="text-head font-semibold">This window is not signed in</h1>
      {login === 'password' ? (
        <Password />
      ) : (
        <p className="text-text2">
          Run <code>tendril</code> again: it prints a new link. Links work once, so an old one or a bookmark does not.
        </p>
      )}
    </main>
  )
}

function Password() {
  const [password, setPassword] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const send = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await request('POST', '/login', { password })
      location.reload()
    } catch (e) {
      setError(e)
      setBusy(false)
    }
  }
  return (
    <form
      className="grid gap-3"
      onSubmit={(e) => {
        e.preventDefault()
        void send()
      }}
    >
      <Field label="Password" help="The one that Tendril was started with on the other machine.">
        {(props) => <input {...props} className="input" type="password" autoComplete="current-password" autoFocus value={password} onChange={(e) => setPassword(e.target.value)} />}
      </Field>
      {error !== undefined && <ErrorNotice error={error} />}
      <Button kind="primary" type="submit" busy={busy} disabled={!password} className="justify-self-start">
        Sign in
      </Button>
    </form>
  )
}
