import { useEffect, useState } from 'react'

/** The time, told anew each second while it is needed. */
export function useNow(active: boolean): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (!active) return
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [active])
  return now
}

/** A value that changed at least ms ago. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms)
    return () => clearTimeout(timer)
  }, [value, ms])
  return settled
}

/** Reports whether the window is narrower than the lists beside a chat need. */
export function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(() => query.matches)
  useEffect(() => {
    const change = () => setNarrow(query.matches)
    query.addEventListener('change', change)
    return () => query.removeEventListener('change', change)
  }, [])
  return narrow
}

const query = window.matchMedia('(max-width: 1023px)')

/** Reports whether something lies over the page that Esc closes first. */
export function overlayOpen(): boolean {
  return document.querySelector('dialog[open], [role=menu], [data-overlay]') !== null
}
