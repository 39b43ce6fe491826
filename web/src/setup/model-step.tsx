import type { Fault, Provider } from '../api/types'
import { plain } from '../lib/words'
import { Notice } from '../ui/notice'
import { Step } from './step'
import { WayForm } from './way-form'
import { chosen, demo, lacking, modelOf, ways, type Pick, type Way } from './ways'

interface Props {
  providers: Provider[]
  pick: Pick
  faults: Fault[] // what Start said about the model
  open: boolean
  onToggle: () => void
  onPick: (pick: Pick) => void
  onDone: () => void
}

/** Which model: one that was found, one with a key or an endpoint of one's own, or the demo. */
export function ModelStep({ providers, pick, faults, open, onToggle, onPick, onDone }: Props) {
  const list = ways(providers)
  const found = list.filter((w) => w.found)
  const own = list.filter((w) => !w.found)
  const way = chosen(pick, list)
  const typed = way && pick.typed[way.id]
  const choose = (choice: string) => onPick({ ...pick, choice })
  const name = (path: string) => path.split('.')[2] ?? ''
  const fields = way ? ['modelId', ...way.needs] : []
  const rest = faults.filter((f) => !fields.includes(name(f.path ?? '')))
  return (
    <Step number={2} title="Model" told={way && told(way, typed)} done={way !== undefined && lacking(way, typed).length === 0} failed={faults.length > 0} open={open} onToggle={onToggle}>
      <div className="choices" role="radiogroup" aria-label="Model">
        {found.map((w) => (
          <Choice key={w.id} name={w.name} help={w.reason ?? 'Found'} checked={pick.choice === w.id} onChoose={() => choose(w.id)} />
        ))}
        <Choice name="With a key or an endpoint of your own" help={own.map((w) => w.name).join(', ')} checked={pick.choice === 'own'} onChoose={() => choose('own')} />
        <Choice name="Demo" help="Without a model: three scripted prompts that build and run real capabilities" checked={pick.choice === 'demo'} onChoose={() => choose('demo')} />
      </div>
      {way && way !== demo && (
        <WayForm
          way={way}
          others={pick.choice === 'own' ? own : []}
          typed={typed ?? {}}
          problem={(field) => faults.filter((f) => name(f.path ?? '') === field).map((f) => plain(f.text))[0]}
          onWay={(id) => onPick({ ...pick, own: id })}
          onType={(values) => onPick({ ...pick, typed: { ...pick.typed, [way.id]: { ...typed, ...values } } })}
          onDone={onDone}
        />
      )}
      {rest.map((f) => <Notice key={f.text} tone="fail">{plain(f.text)}</Notice>)}
    </Step>
  )
}

function told(way: Way, typed: Pick['typed'][string] | undefined): string {
  const missing = lacking(way, typed)
  if (missing.length > 0) return `${way.name}: something is to be filled in`
  const untested = way.keyEnv && typed?.key?.trim() !== typed?.tested
  return [way.name, modelOf(way, typed), untested && 'key not tested'].filter(Boolean).join(', ')
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
