import { useCapability } from '../api/queries'
import type { Permission, Tool } from '../api/types'
import { visibleLine } from '../lib/visible'
import { kind, text } from './describe'
import { Source } from './tool-body'

/** What a capability may do besides what is asked about, and its source: all are to be weighed together. */
export function Powers({ permission, tool }: { permission: Permission; tool?: Tool }) {
  const built = tool && kind(tool) === 'register'
  const kept = useCapability(built ? '' : (permission.capability ?? ''))
  const source = built ? text(tool.input, 'code') : kept.data && kept.data.sha256 === permission.sha256 ? kept.data.source : undefined
  return (
    <>
      <p>
        Besides, it {String(permission.read) === String(permission.write) ? list('reads and writes', permission.read) : `${list('reads', permission.read)} and ${list('writes', permission.write)}`}
        {(permission.secrets ?? []).length > 0 && <>, and {list('gets the secrets', permission.secrets)}</>}.
      </p>
      {source && <Source code={source} />}
    </>
  )
}

const list = (verb: string, paths: string[] | null) => `${verb} ${paths?.length ? paths.map((p) => (p === '.' ? 'the workspace' : visibleLine(p))).join(', ') : 'nothing'}`
