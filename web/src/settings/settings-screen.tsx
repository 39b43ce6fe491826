import { useEffect } from 'react'
import { Link } from 'wouter'
import { Button, Spinner } from '../ui/button'
import { ErrorNotice } from '../ui/notice'
import { Doctor } from './doctor'
import { useForm } from './form'
import { Keys } from './keys'
import { ModelSettings } from './model'
import { sections } from './places'
import { SaveBar } from './save-bar'
import { Bounds, Places, Sandbox } from './sections'

/** All settings. What was changed stays changed while one looks at other sections, until it is saved. */
export function SettingsScreen({ section = 'model', item }: { section?: string; item?: string }) {
  const { form, query } = useForm()
  const dismiss = form?.dismiss
  useEffect(() => dismiss?.(), [section]) // what Save said belongs to the section where it was pressed
  const current = sections.find((s) => s.id === section) ?? sections[0]
  return (
    <div className="settings">
      <nav className="settings-nav" aria-label="Settings">
        {sections.map((s) => (
          <Link key={s.id} href={`/settings/${s.id}`} aria-current={s === current ? 'page' : undefined}>
            {s.label}
          </Link>
        ))}
      </nav>
      <div className="settings-main">
        <div className="settings-scroll">
          <div className="settings-form">
            <h1 className="text-head font-semibold">{current.label}</h1>
            {query.isError && <ErrorNotice error={query.error} retry={<Button small onClick={() => void query.refetch()}>Try again</Button>} />}
            {query.isPending && <p className="flex items-center gap-2 text-text3"><Spinner /> Loading</p>}
            {form && current.id === 'model' && <ModelSettings form={form} />}
            {current.id === 'keys' && <Keys form={form} wanted={item} />}
            {form && current.id === 'sandbox' && <Sandbox form={form} />}
            {form && current.id === 'bounds' && <Bounds form={form} />}
            {form && current.id === 'places' && <Places form={form} />}
            {current.id === 'doctor' && <Doctor />}
          </div>
        </div>
        {form && <SaveBar form={form} />}
      </div>
    </div>
  )
}
