import { useEffect, useRef, useState } from 'react'
import { useStore } from '../state/store'

/** The one polite status region: what changed, never each token. */
export function Announcer() {
  const [text, setText] = useState('')
  const running = useStore((s) => Object.values(s.sessions).filter((x) => x.running).length)
  const question = useStore((s) => Object.values(s.sessions).flatMap((x) => x.permissions ?? [])[0]?.title)
  const lost = useStore((s) => s.connection === 'lost')
  const before = useRef({ running, question, lost })
  useEffect(() => {
    const was = before.current
    before.current = { running, question, lost }
    if (lost !== was.lost) setText(lost ? 'The connection to Tendril is lost' : 'Connected again')
    else if (question && question !== was.question) setText(`A permission is asked for: ${question} Press F6 to go there`)
    else if (running > was.running) setText('Tendril is working')
    else if (running < was.running) setText('Tendril has finished')
  }, [running, question, lost])
  return (
    <div role="status" className="sr-only">
      {text}
    </div>
  )
}
