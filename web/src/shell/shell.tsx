import { MessageSquare, Settings } from 'lucide-react'
import type { ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import { useStore } from '../state/store'
import { Mark } from '../ui/mark'
import { Announcer } from './announce'
import { Banner } from './banner'
import { StatusLine } from './status'

/** The frame: the rail on the left, the status line at the bottom. */
export function Shell({ children }: { children: ReactNode }) {
  return (
    <div className="shell">
      <Rail />
      <div className="shell-main">
        <Banner />
        <main className="shell-screen">{children}</main>
      </div>
      <StatusLine />
      <Announcer />
    </div>
  )
}

const places = [
  { to: '/chat', label: 'Chat', icon: MessageSquare },
  { to: '/settings', label: 'Settings', icon: Settings },
]

function Rail() {
  const [location] = useLocation()
  const waiting = useStore((s) => Object.values(s.sessions).some((session) => (session.permissions ?? []).length > 0))
  return (
    <nav className="rail" aria-label="Places">
      <span className="rail-mark">
        <Mark size={22} />
      </span>
      {places.map(({ to, label, icon: Icon }) => {
        const here = location === to || location.startsWith(`${to}/`)
        return (
          <Link key={to} href={to} className={`rail-link ${to === '/settings' ? 'mt-auto' : ''}`} aria-current={here ? 'page' : undefined} aria-label={label} title={label}>
            <Icon size={20} strokeWidth={1.75} aria-hidden="true" />
            {to === '/chat' && waiting && !here && <span className="rail-dot" title="A permission is asked for" />}
          </Link>
        )
      })}
    </nav>
  )
}
