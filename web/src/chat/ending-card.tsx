import { Ban, CircleAlert, RotateCcw, Unplug } from 'lucide-react'
import { Link } from 'wouter'
import { useProviders } from '../api/queries'
import type { Turn } from '../api/types'
import { visible } from '../lib/visible'
import { Button } from '../ui/button'
import { ending } from './ending'

const icons = { fail: CircleAlert, wait: Unplug, off: Ban }

/** How a turn ended, unless it came to a good end. What to do next is said only while it can be done. */
export function EndingCard({ turn, onSendAgain }: { turn: Turn; onSendAgain?: () => void }) {
  const failed = turn.error !== undefined
  const providers = useProviders(failed) // for their names
  const told = ending(turn, providers.data ?? [])
  if (!told) return null
  const Icon = icons[told.tone]
  return (
    <div className={`ending ending-${told.tone}`} data-anchor="">
      <Icon size={16} aria-hidden="true" />
      <div className="min-w-0 flex-1">
        <p className="font-medium">{told.what}</p>
        {told.why && <p className="whitespace-pre-wrap text-text2">{visible(told.why)}</p>}
        {told.next && onSendAgain && <p className="text-text2">{visible(told.next)}</p>}
        {told.keys !== undefined && onSendAgain && <Link className="link-btn" href={`/settings/keys/${told.keys}`}>Store another key</Link>}
      </div>
      {onSendAgain && (
        <Button small onClick={onSendAgain}>
          <RotateCcw size={14} aria-hidden="true" /> Send again
        </Button>
      )}
    </div>
  )
}
