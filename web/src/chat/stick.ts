// Scrolling of a conversation: at its end it stays there; elsewhere nothing moves.

import { useCallback, useEffect, useRef, useState } from 'react'

const near = 24 // px from the end that still count as the end

/**
 * A scroller that follows its content's end until the person scrolls up. Away from the
 * end, what is in sight stays where it is when something above it changes its height
 * (not every browser does that by itself, so that the style sheet turns it off).
 */
export function useStick() {
  const scroller = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const follow = useRef(true)
  const [away, setAway] = useState(false)

  const toEnd = useCallback(() => {
    follow.current = true
    setAway(false)
    const el = scroller.current
    if (el) el.scrollTop = el.scrollHeight
  }, [])

  useEffect(() => {
    const el = scroller.current
    const inner = content.current
    if (!el || !inner) return
    let top = el.scrollTop
    let anchor: { element: Element; offset: number } | undefined
    const scrolled = () => {
      const below = el.scrollHeight - el.scrollTop - el.clientHeight
      if (el.scrollTop < top) {
        if (below > 1) follow.current = false // else the content has shrunk
      } else if (below < near) {
        follow.current = true
      }
      top = el.scrollTop
      anchor = follow.current ? undefined : findAnchor(el)
      setAway(!follow.current)
    }
    const resized = () => {
      if (follow.current) {
        el.scrollTop = el.scrollHeight
      } else if (anchor?.element.isConnected) {
        const shift = anchor.element.getBoundingClientRect().top - el.getBoundingClientRect().top - anchor.offset
        if (Math.abs(shift) >= 1) el.scrollTop += shift
      }
      top = el.scrollTop
    }
    const observer = new ResizeObserver(resized)
    observer.observe(inner)
    observer.observe(el)
    el.addEventListener('scroll', scrolled, { passive: true })
    return () => {
      observer.disconnect()
      el.removeEventListener('scroll', scrolled)
    }
  }, [])

  return { scroller, content, away, toEnd }
}

/** The first thing in sight, and how far it is from the top. */
function findAnchor(scroller: Element): { element: Element; offset: number } | undefined {
  const top = scroller.getBoundingClientRect().top
  for (const turn of scroller.querySelectorAll('[data-turn]')) {
    if (turn.getBoundingClientRect().bottom <= top) continue
    for (const element of turn.querySelectorAll('[data-anchor]')) {
      const box = element.getBoundingClientRect()
      if (box.bottom > top) return { element, offset: box.top - top }
    }
  }
  return undefined
}
