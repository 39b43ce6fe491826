import { useState } from 'react'
import { signIn } from '../api/client'
import { resume } from '../state/stream'
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
          Run <code>tendril</code> again: it opens a new link, and this window then goes on by itself. A link works once, within 10 minutes, and
          what it opens is signed in until Tendril ends.
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
      await signIn({ password })
      resume()
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
