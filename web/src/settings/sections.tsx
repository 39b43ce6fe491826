import type { ReactNode } from 'react'
import { useStore } from '../state/store'
import { CopyButton } from '../ui/copy'
import { Notice } from '../ui/notice'
import type { Form } from './form'
import { ChoiceSetting, LinesSetting, NumberSetting, TextSetting } from './inputs'

export function Sandbox({ form }: { form: Form }) {
  return (
    <>
      <p className="text-text2">What capabilities may do while they run.</p>
      <ChoiceSetting
        form={form}
        path="sandbox.policy.network"
        label="Network"
        fallback="auto"
        choices={[
          { value: 'auto', label: 'Allow the hosts that a capability declares', help: 'Any host at all, and secrets, are still asked about once.' },
          { value: 'ask', label: 'Ask about each new host', help: 'A card in the chat waits for your answer.' },
          { value: 'deny', label: 'No network', help: 'Nothing is asked, nothing is reached.' },
        ]}
      />
      <LinesSetting form={form} path="sandbox.allowedDomains" label="Hosts that may be reached at all" placeholder="*.example.com" help="One a line. Empty: no such limit." />
      <NumberSetting form={form} path="sandbox.timeoutMs" label="Time limit of a run" unit="seconds" scale={1000} placeholder="45" />
      <ChoiceSetting
        form={form}
        path="sandbox.require"
        label="Isolation"
        fallback="any"
        choices={[
          { value: 'any', label: 'Deno’s permissions, and the operating system’s where it has them', help: 'Runs everywhere.' },
          { value: 'os', label: 'Only with the operating system’s isolation', help: 'Where there is none, nothing runs.' },
        ]}
      />
      <Group title="Limits of a run" help="Empty: the sandbox’s own limit.">
        <NumberSetting form={form} path="sandbox.limits.outputBytes" label="Output" unit="KB" scale={1024} />
        <NumberSetting form={form} path="sandbox.limits.rssMB" label="Memory" unit="MB" />
        <NumberSetting form={form} path="sandbox.limits.heapMB" label="JavaScript heap" unit="MB" />
        <NumberSetting form={form} path="sandbox.limits.fileMB" label="One file" unit="MB" />
        <NumberSetting form={form} path="sandbox.limits.writtenMB" label="Written in all" unit="MB" />
        <NumberSetting form={form} path="sandbox.limits.files" label="Open files" unit="files" />
        <NumberSetting form={form} path="sandbox.limits.processes" label="Processes" unit="processes" />
        <NumberSetting form={form} path="sandbox.limits.cpuS" label="Processor time" unit="seconds" />
      </Group>
      <TextSetting form={form} path="sandbox.caFile" label="Certificates" placeholder="/etc/ssl/company-ca.pem" help="A file with certificates that capabilities trust besides the usual ones." />
    </>
  )
}

export function Bounds({ form }: { form: Form }) {
  return (
    <>
      <p className="text-text2">A turn that reaches a bound stops and says so. Nothing is lost.</p>
      <Group title="Turn">
        <NumberSetting form={form} path="agent.maxTurns" label="Model calls" unit="calls" placeholder="100" step={1} />
        <NumberSetting form={form} path="agent.timeoutMs" label="Time" unit="minutes" scale={60_000} placeholder="no limit" />
      </Group>
      <Group title="Budget" help="For models whose price is known.">
        <NumberSetting form={form} path="agent.budget.turnUSD" label="A turn" unit="USD" placeholder="no limit" />
        <NumberSetting form={form} path="agent.budget.sessionUSD" label="A session" unit="USD" placeholder="no limit" />
        <NumberSetting form={form} path="agent.budget.dayUSD" label="A day" unit="USD" placeholder="no limit" />
      </Group>
      <Group title="Capabilities">
        <NumberSetting form={form} path="registry.maxCapabilities" label="At most" unit="capabilities" placeholder="500" step={1} />
        <NumberSetting form={form} path="registry.listBytes" label="Listing that the model sees" unit="KB" scale={1024} placeholder="12" />
      </Group>
    </>
  )
}

export function Places({ form }: { form: Form }) {
  const deno = useStore((s) => s.state?.deno)
  const version = useStore((s) => s.state?.version)
  const workspace = useStore((s) => s.state?.workspace)
  return (
    <>
      <TextSetting form={form} path="workspace" label="Workspace" placeholder="~/tendril-workspace" help="The folder that Tendril works in. Its capabilities are in the folder tools." />
      {workspace?.error && <Notice tone="fail">{workspace.error}</Notice>}
      <dl className="places">
        <Place label="Workspace in use" value={workspace?.path} />
        <Place label="Settings" value={form.data.path} />
        <Place label={`Deno ${deno?.version ?? ''}`} value={deno?.path ?? deno?.error} />
        <Place label="Tendril" value={version && `version ${version}`} />
      </dl>
      <TextSetting form={form} path="sandbox.denoPath" label="Another Deno" placeholder="deno" help="Empty, or deno: the one that Tendril manages." />
      {form.data.warnings?.map((w) => (
        <Notice key={`${w.path}${w.text}`} tone="wait"><code>{w.path}</code> {w.text}</Notice>
      ))}
    </>
  )
}

function Place({ label, value }: { label: string; value?: string }) {
  if (!value) return null
  return (
    <div>
      <dt>{label}</dt>
      <dd>
        <code>{value}</code> <CopyButton text={value} />
      </dd>
    </div>
  )
}

function Group({ title, help, children }: { title: string; help?: string; children: ReactNode }) {
  return (
    <fieldset>
      <legend className="mb-2 font-semibold">{title}{help && <span className="help ml-2 font-normal">{help}</span>}</legend>
      <div className="settings-grid">{children}</div>
    </fieldset>
  )
}
