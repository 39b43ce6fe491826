import { Check, ChevronRight, CircleAlert, Minus, X } from 'lucide-react'
import { memo, useState } from 'react'
import type { Step, Tool } from '../api/types'
import { duration } from '../lib/format'
import { visible, visibleLine } from '../lib/visible'
import { hostName, refusal } from '../lib/words'
import { Code } from '../markdown/code'
import { Spinner } from '../ui/button'
import { CopyButton } from '../ui/copy'
import { field, gate, kind, stepName, strings, text, type Phase } from './describe'

/** All of a tool call. */
export const ToolBody = memo(function ToolBody({ tool, phase }: { tool: Tool; phase: Phase }) {
  if (kind(tool) === 'register') return <BuildBody tool={tool} phase={phase} />
  const args = kind(tool) === 'execute' ? field(tool.input, 'args') : tool.input
  const stderr = text(tool.detail, 'stderr')
  const live = phase === 'running' || phase === 'waiting'
  return (
    <div className="tool-body">
      {!empty(args) && <Part label="Arguments" text={pretty(args)} language="json" />}
      {live && tool.lines && tool.lines.length > 0 && <Part label="Output so far" text={tool.lines.join('\n')} tail />}
      {tool.output !== undefined && tool.output !== '' && <Part label={phase === 'failed' ? 'Error' : 'Output'} text={tool.output} language={json(tool.output) ? 'json' : ''} />}
      {stderr && <Part label="stderr" text={stderr} />}
      {tool.note && <p className="text-text2">{visible(tool.note)}</p>}
      {live && !tool.lines?.length && <p className="text-meta text-text3">Nothing printed yet.</p>}
    </div>
  )
})

function BuildBody({ tool, phase }: { tool: Tool; phase: Phase }) {
  const definition = field(tool.input, 'definition')
  const code = text(tool.input, 'code')
  const does = text(definition, 'capability')
  const { summary, body } = failure(tool, phase)
  return (
    <div className="tool-body">
      {does && <p className="text-text2">{visibleLine(does)}</p>}
      {(phase === 'running' || phase === 'waiting' || phase === 'failed') && <Gate steps={tool.steps ?? []} live={phase === 'running'} />}
      {summary && body && <Part label={summary} text={body} />}
      {phase === 'done' && <Grants grants={field(tool.detail, 'grants')} />}
      {phase === 'done' && <Warnings list={strings(tool.detail, 'warnings')} />}
      {phase === 'done' && (tool.steps?.length ?? 0) > 0 && <Evidence steps={tool.steps!} />}
      {code && <Source code={code} />}
    </div>
  )
}

function failure(tool: Tool, phase: Phase): { summary?: string; body?: string } {
  if (phase !== 'failed' || !tool.output) return {}
  const step = tool.steps?.find((s) => s.state === 'failed')
  return { summary: step ? `${stepName(step.step)}: what is wrong` : 'What is wrong', body: tool.output }
}

/** The steps of the gate, ticking in place: those that are still to come are there, too. */
function Gate({ steps, live }: { steps: Step[]; live: boolean }) {
  const seen = new Set(steps.map((s) => s.step))
  const rest = live ? gate.filter((s) => !seen.has(s)) : []
  return (
    <ol className="gate" aria-label="Checks">
      {steps.map((step) => (
        <li key={step.step} className={`gate-${step.state}`}>
          <StepIcon state={step.state} />
          <span>{stepName(step.step)}</span>
          {step.note && <span className="gate-note">{visible(refusal(step.note))}</span>}
          {step.durationMs !== undefined && <span className="tool-time">{duration(step.durationMs)}</span>}
        </li>
      ))}
      {rest.map((step) => (
        <li key={step} className="gate-pending">
          <span className="gate-dot" aria-hidden="true" />
          <span>{stepName(step)}</span>
        </li>
      ))}
    </ol>
  )
}

function StepIcon({ state }: { state: Step['state'] }) {
  const icon = { running: <Spinner />, passed: <Check size={14} />, warned: <CircleAlert size={14} />, failed: <X size={14} />, skipped: <Minus size={14} /> }[state] ?? <Minus size={14} />
  return (
    <span className="gate-icon">
      {icon}
      <span className="sr-only">{state}</span>
    </span>
  )
}

/** The same steps in one line, once they have passed. */
function Evidence({ steps }: { steps: Step[] }) {
  return (
    <ul className="evidence" aria-label="Checks">
      {steps.map((step) => (
        <li key={step.step} className={`gate-${step.state}`} title={step.note}>
          <StepIcon state={step.state} />
          {stepName(step.step)}
          {step.durationMs !== undefined && <span className="text-text3">{duration(step.durationMs)}</span>}
        </li>
      ))}
    </ul>
  )
}

/** What a capability may reach. */
function Grants({ grants }: { grants: unknown }) {
  if (grants === undefined) return null
  const chips = [
    ['Network', strings(grants, 'net'), 'no network'],
    ['Reads', strings(grants, 'read'), 'reads nothing'],
    ['Writes', strings(grants, 'write'), 'writes nothing'],
    ['Secrets', strings(grants, 'secrets'), ''],
  ] as const
  return (
    <p className="flex flex-wrap gap-1" aria-label="Permissions">
      {chips.map(([label, list, none]) => {
        const words = list.length > 0 ? `${label}: ${list.map((s) => visibleLine(hostName(s))).join(', ')}` : none
        return words && <span key={label} className="chip">{words}</span>
      })}
    </p>
  )
}

function Warnings({ list }: { list: string[] }) {
  if (list.length === 0) return null
  return (
    <ul className="grid gap-1">
      {list.map((w) => (
        <li key={w} className="flex gap-2 text-wait">
          <CircleAlert size={14} className="mt-1 flex-none" aria-hidden="true" /> {visible(w)}
        </li>
      ))}
    </ul>
  )
}

/** The source of a capability, opened on demand. */
export function Source({ code }: { code: string }) {
  const [open, setOpen] = useState(false)
  return (
    <div>
      <button type="button" className="disclose" aria-expanded={open} onClick={() => setOpen(!open)}>
        <ChevronRight size={14} aria-hidden="true" /> Source
      </button>
      {open && <Part label="TypeScript" text={code} language="ts" />}
    </div>
  )
}

const fold = 20 // lines of a text that are shown at first

/** A text of a call with a copy button; long ones are shown in full only when that is asked for. */
export function Part({ label, text, language = '', tail = false }: { label: string; text: string; language?: string; tail?: boolean }) {
  const [all, setAll] = useState(false)
  const shown = visible(text.replace(/\s+$/, ''))
  const lines = shown.split('\n')
  const long = lines.length > fold + 3
  const cut = !long || all ? shown : (tail ? lines.slice(-fold) : lines.slice(0, fold)).join('\n')
  return (
    <figure className="part">
      <figcaption>
        <span>{label}</span>
        <CopyButton text={text} />
      </figcaption>
      <pre>
        <Code code={cut} language={language} />
      </pre>
      {long && (
        <button type="button" className="part-more" onClick={() => setAll(!all)}>
          {all ? 'Show less' : `Show all ${lines.length.toLocaleString('en')} lines`}
        </button>
      )}
    </figure>
  )
}

const empty = (value: unknown) => value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0)

const pretty = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))

function json(s: string): boolean {
  if (!/^\s*[[{]/.test(s) || s.length > 200_000) return false
  try {
    JSON.parse(s)
    return true
  } catch {
    return false
  }
}
