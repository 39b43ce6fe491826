import type { ReactNode } from 'react'
import { APIError, request } from '../api/client'
import { queries, useSettings, useSetup } from '../api/queries'
import { Button, Spinner } from '../ui/button'
import { Mark } from '../ui/mark'
import { ErrorNotice, Notice } from '../ui/notice'
import { useStore } from '../state/store'
import { sentence } from '../lib/words'
import { Steps } from './steps'

/** From a blank profile to the first prompt: a folder, a model, Deno. */
export function FirstStart() {
  const setup = useSetup()
  const settings = useSettings()
  const error = setup.error ?? settings.error
  const broken = useStore((s) => s.state?.settingsError)
  const again = async () => {
    if (broken) await request('POST', '/agent/restart').catch(() => {}) // it reads them, and tells
    await queries.invalidateQueries({ queryKey: ['settings'] })
  }
  const retry = <Button small onClick={() => void again()}>Try again</Button>
  if (broken || (error instanceof APIError && error.code === 'settings')) {
    return (
      <Frame title="The settings cannot be read">
        <Notice tone="fail" action={retry}>{sentence(broken ?? error)}</Notice>
        <p className="text-text2">Mend that place in an editor, and try again. Or move the file away, and try again: then Tendril asks for a folder and a model as at its first start. Sessions, keys and capabilities are kept elsewhere, and stay.</p>
      </Frame>
    )
  }
  return (
    <Frame title="Set up Tendril" lead="An agent that builds the tools it needs, checks them, and keeps them in a folder of yours.">
      {error ? <ErrorNotice error={error} retry={retry} /> : setup.data && settings.data ? <Steps setup={setup.data} settings={settings.data.settings} /> : <p className="flex items-center gap-2 text-text3"><Spinner /> Looking at what is here</p>}
    </Frame>
  )
}

function Frame({ title, lead, children }: { title: string; lead?: string; children: ReactNode }) {
  return (
    <main className="setup">
      <div className="setup-column">
        <header className="mb-1 grid gap-1">
          <span className="text-accent"><Mark size={28} /></span>
          <h1 className="text-head font-semibold">{title}</h1>
          {lead && <p className="text-text2">{lead}</p>}
        </header>
        {children}
      </div>
    </main>
  )
}
