import { Copy, Download, Ellipsis, FileJson, Pencil, Plus, Search, Trash2, X } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { useSessions } from '../api/queries'
import type { SessionSummary } from '../api/types'
import { age, when } from '../lib/format'
import { useSettled } from '../lib/hooks'
import { visibleLine } from '../lib/visible'
import { useStore } from '../state/store'
import { Button, IconButton, Spinner } from '../ui/button'
import { Menu } from '../ui/menu'
import { ErrorNotice } from '../ui/notice'
import { exportURL, fork } from './actions'
import { DeleteDialog, RenameDialog } from './dialogs'

interface Props {
  current?: string
  onPick?: () => void // after a session was chosen
}

/** The sessions: search, a new one, and what can be done with each. */
export function SessionList({ current, onPick }: Props) {
  const [, go] = useLocation()
  const [query, setQuery] = useState('')
  const sessions = useSessions(useSettled(query.trim(), 150))
  const list = sessions.data?.pages.flatMap((p) => p.sessions ?? []) ?? []
  const pick = (to: string) => {
    go(to)
    onPick?.()
  }
  return (
    <aside className="session-list" aria-label="Sessions">
      <div className="session-head">
        <label className="search">
          <Search size={14} aria-hidden="true" />
          <input id="session-search" type="search" placeholder="Search sessions" aria-label="Search sessions" value={query} onChange={(e) => setQuery(e.target.value)} onKeyDown={(e) => e.key === 'Escape' && query && (e.stopPropagation(), setQuery(''))} />
          {query && <IconButton label="Clear the search" className="search-clear" onClick={() => setQuery('')}><X size={14} /></IconButton>}
        </label>
        <IconButton label="New session (Ctrl Shift O)" onClick={() => pick('/chat')}>
          <Plus size={18} />
        </IconButton>
      </div>
      <div className="session-scroll">
        {sessions.isError && <div className="p-2"><ErrorNotice error={sessions.error} retry={<Button small onClick={() => void sessions.refetch()}>Try again</Button>} /></div>}
        {sessions.isPending && !sessions.isError && <p className="session-empty"><Spinner /> Loading</p>}
        {sessions.isSuccess && list.length === 0 && <p className="session-empty">{query ? 'No session has these words.' : 'Sessions that you start are listed here.'}</p>}
        <Groups list={list} current={current} searching={query !== ''} onPick={pick} />
        {sessions.hasNextPage && (
          <Button small kind="ghost" className="mx-2 my-1" busy={sessions.isFetchingNextPage} onClick={() => void sessions.fetchNextPage()}>
            Show more
          </Button>
        )}
      </div>
    </aside>
  )
}

interface GroupsProps {
  list: SessionSummary[]
  current?: string
  searching: boolean
  onPick: (to: string) => void
}

function Groups({ list, current, searching, onPick }: GroupsProps) {
  let group = ''
  return (
    <ul>
      {list.map((session) => {
        const next = searching ? '' : age(session.updated)
        const heading = next !== group ? next : ''
        group = next
        return (
          <li key={session.id}>
            {heading && <h2 className="session-group">{heading}</h2>}
            <Row session={session} here={session.id === current} onPick={onPick} />
          </li>
        )
      })}
    </ul>
  )
}

function Row({ session, here, onPick }: { session: SessionSummary; here: boolean; onPick: (to: string) => void }) {
  const [dialog, setDialog] = useState<'rename' | 'delete'>()
  const state = useStore((s) => s.sessions[session.id])
  const title = visibleLine(session.title) || 'Untitled'
  const row = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (here) row.current?.scrollIntoView({ block: 'nearest' })
  }, [here])
  return (
    <div ref={row} className={`session-row ${here ? 'session-here' : ''}`}>
      <a
        href={`#/chat/${session.id}`}
        aria-current={here ? 'page' : undefined}
        className="session-link"
        title={`${title}\n${when(session.updated)}`}
        onClick={(e) => {
          if (e.ctrlKey || e.metaKey || e.shiftKey) return
          e.preventDefault()
          onPick(`/chat/${session.id}`)
        }}
      >
        <span className="session-title" dir="auto">{title}</span>
        <Activity running={state?.running ?? false} asks={(state?.permissions?.length ?? 0) > 0} />
        {session.match && <span className="session-match" dir="auto">{visibleLine(session.match)}</span>}
      </a>
      <SessionMenu id={session.id} onPick={onPick} onRename={() => setDialog('rename')} onDelete={() => setDialog('delete')} />
      {dialog === 'rename' && <RenameDialog id={session.id} title={session.title} onClose={() => setDialog(undefined)} />}
      {dialog === 'delete' && <DeleteDialog id={session.id} title={title} onClose={() => setDialog(undefined)} onDeleted={() => here && onPick('/chat')} />}
    </div>
  )
}

function Activity({ running, asks }: { running: boolean; asks: boolean }) {
  if (asks) return <span className="session-mark text-wait">asks you</span>
  if (running) return <span className="session-mark text-run"><Spinner /><span className="sr-only">working</span></span>
  return null
}

interface MenuProps {
  id: string
  onPick: (to: string) => void
  onRename: () => void
  onDelete: () => void
}

/** What can be done with a session. */
export function SessionMenu({ id, onPick, onRename, onDelete }: MenuProps) {
  const [problem, setProblem] = useState<unknown>()
  const copy = async () => {
    try {
      onPick(`/chat/${await fork(id)}`)
    } catch (e) {
      setProblem(e)
    }
  }
  return (
    <>
      <Menu
        trigger={<IconButton label="What to do with this session" className="session-menu"><Ellipsis size={16} /></IconButton>}
        items={[
          { label: 'Rename', icon: <Pencil size={14} />, onSelect: onRename },
          { label: 'Fork', icon: <Copy size={14} />, onSelect: () => void copy() },
          { label: 'Export as Markdown', icon: <Download size={14} />, onSelect: () => location.assign(exportURL(id, 'markdown')) },
          { label: 'Export as JSON', icon: <FileJson size={14} />, onSelect: () => location.assign(exportURL(id, 'json')) },
          'line',
          { label: 'Delete', icon: <Trash2 size={14} />, danger: true, onSelect: onDelete },
        ]}
      />
      {problem !== undefined && <div className="session-problem"><ErrorNotice error={problem} retry={<IconButton label="Close" onClick={() => setProblem(undefined)}><X size={14} /></IconButton>} /></div>}
    </>
  )
}
