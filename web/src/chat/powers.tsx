import { useCapability } from '../api/queries'
import type { Permission, Tool } from '../api/types'
import { visibleLine } from '../lib/visible'
import { field, kind, strings, text } from './describe'
import { Source } from './tool-body'

/** What a capability may do besides what is asked about, and its source: both are to be weighed together. */
export function Powers({ permission, tool }: { permission: Permission; tool?: Tool }) {
  const built = tool && kind(tool) === 'register'
  const kept = useCapability(built ? '' : (permission.capability ?? ''))
  const source = built ? text(tool.input, 'code') : kept.data?.source
  const may = built ? declared(field(field(tool.input, 'definition'), 'permissions')) : kept.data && { read: kept.data.grants.read ?? [], write: kept.data.grants.write ?? [] }
  if (!may) return kept.isError ? <p className="text-wait">What else it may do is not known: it could not be asked for.</p> : null
  return (
    <>
      <p>
        Besides, it {String(may.read) === String(may.write) ? list('reads and writes', may.read) : `${list('reads', may.read)} and ${list('writes', may.write)}`}.
      </p>
      {source && <Source code={source} />}
    </>
  )
}

/** As a definition declares it: what it leaves out is the workspace. */
function declared(permissions: unknown): { read: string[]; write: string[] } {
  const paths = (key: string) => (field(permissions, key) === undefined || field(permissions, key) === null ? ['the workspace'] : strings(permissions, key))
  return { read: paths('read'), write: paths('write') }
}

const list = (verb: string, paths: string[]) => `${verb} ${paths.length > 0 ? paths.map((p) => (p === '.' ? 'the workspace' : visibleLine(p))).join(', ') : 'nothing'}`
