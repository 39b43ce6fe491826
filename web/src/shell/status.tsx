import { useRoute } from 'wouter'
import type { AgentStatus, Usage } from '../api/types'
import { cost, count, seconds } from '../lib/format'
import { useNow } from '../lib/hooks'
import { visibleLine } from '../lib/visible'
import { useStore } from '../state/store'

/** Connection, model, context, tokens, cost and time, in one line at the bottom. */
export function StatusLine() {
  const [, params] = useRoute<{ session?: string }>('/chat/:session?')
  const session = useStore((s) => (params?.session ? s.sessions[params.session] : undefined))
  const model = useStore((s) => s.state?.model)
  const modelError = useStore((s) => s.state?.modelError)
  const demo = useStore((s) => s.state?.demo)
  const connected = useStore((s) => s.connection === 'open')
  const workspace = useStore((s) => s.state?.workspace.path)
  return (
    <footer className="status" aria-label="Status">
      <Health />
      <span className="status-item truncate" title={modelError ?? model?.reason}>
        {demo ? 'Demo, no model' : model ? visibleLine(model.name) : modelError ? 'No model' : '…'}
      </span>
      {workspace && <span className="status-item hidden truncate text-text3 lg:inline" title="Workspace">{visibleLine(workspace)}</span>}
      <span className="flex-1" />
      {session && session.usage.input + session.usage.output > 0 && <Totals usage={session.usage} />}
      {session?.running && connected && <Elapsed since={session.since} />}
    </footer>
  )
}

function Health() {
  const connection = useStore((s) => s.connection)
  const agent = useStore((s) => s.agent?.status)
  const working = useStore((s) => Object.values(s.sessions).some((x) => x.running))
  const [tone, word] = connection === 'open' ? (working && agent === 'ready' ? ['run', 'Working'] : health[agent ?? 'stopped']) : ['wait', connection === 'lost' ? 'Not connected' : 'Connecting']
  return (
    <span className="status-item flex items-center gap-1.5">
      <span className={`dot dot-${tone}`} aria-hidden="true" />
      {word}
    </span>
  )
}

const health: Record<AgentStatus, [string, string]> = {
  ready: ['ok', 'Ready'],
  starting: ['run', 'Starting'],
  restarting: ['wait', 'Restarting'],
  stopped: ['off', 'Agent stopped'],
  failed: ['fail', 'Agent failed'],
}

function Totals({ usage }: { usage: Usage }) {
  const { contextTokens, contextWindow } = usage
  const fill = contextTokens !== undefined && contextWindow ? contextTokens / contextWindow : undefined
  const tokens = usage.input + usage.output + usage.cacheRead + usage.cacheWrite
  return (
    <>
      {fill !== undefined && (
        <span className="status-item flex items-center gap-1.5" title={`The context holds ${contextTokens!.toLocaleString('en')} of ${contextWindow!.toLocaleString('en')} tokens`}>
          Context
          <meter className={`context-meter ${fill > 0.85 ? 'context-full' : ''}`} min={0} max={1} value={fill} />
          {Math.round(fill * 100)} %
        </span>
      )}
      <span
        className="status-item"
        title={`All turns of this session: ${usage.input.toLocaleString('en')} in, ${usage.output.toLocaleString('en')} out, ${usage.cacheRead.toLocaleString('en')} read from the cache, ${usage.cacheWrite.toLocaleString('en')} written to it`}
      >
        {count(tokens)} tokens
      </span>
      <span className="status-item" title={usage.costUSD === undefined ? 'The price of this model is not known' : 'Cost of this session'}>
        {cost(usage.costUSD)}
      </span>
    </>
  )
}

function Elapsed({ since }: { since?: string }) {
  const now = useNow(true)
  if (!since) return null
  return <span className="status-item text-run">{seconds(now - new Date(since).getTime())}</span>
}
