import { Check, Copy } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'

/** Copies a text, and says so only when that is true. */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [state, setState] = useState<'' | 'copied' | 'failed'>('')
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const show = (s: 'copied' | 'failed') => {
    setState(s)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => setState(''), 1600)
  }
  const copy = () => {
    // Within the click: WebKit allows the clipboard only there.
    navigator.clipboard.writeText(text).then(() => show('copied'), () => show('failed'))
  }
  return (
    <button type="button" className="copy-btn" onClick={copy}>
      {state === 'copied' ? <Check size={13} aria-hidden="true" /> : <Copy size={13} aria-hidden="true" />}
      <span aria-live="polite">{state === 'copied' ? 'Copied' : state === 'failed' ? 'Copy failed' : label}</span>
    </button>
  )
}
