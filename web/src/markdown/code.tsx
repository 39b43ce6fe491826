import { memo, useEffect, useState } from 'react'
import { CopyButton } from '../ui/copy'
import type { Span } from './highlight'

interface Props {
  code: string
  language?: string
  plain?: boolean // do not highlight: it is still growing
  label?: string
}

/** A block of code with a copy button. */
export const CodeBlock = memo(function CodeBlock({ code, language = '', plain = false, label }: Props) {
  return (
    <figure className="code-block">
      <figcaption>
        <span>{label ?? (language || 'text')}</span>
        <CopyButton text={code} />
      </figcaption>
      <pre tabIndex={0}>
        <Code code={code} language={plain ? '' : language} />
      </pre>
    </figure>
  )
})

/** Code, coloured as soon as its language's parser is there. */
export const Code = memo(function Code({ code, language }: { code: string; language: string }) {
  const spans = useHighlight(code, language)
  if (!spans) return <code>{code}</code>
  return (
    <code>
      {spans.map((s, i) => (s.className ? <span key={i} className={s.className}>{s.text}</span> : s.text))}
    </code>
  )
})

const highlightable = /^(js|jsx|mjs|cjs|javascript|ts|tsx|mts|typescript|json|jsonc)$/i
const maxHighlighted = 200_000 // characters; more would take longer than a frame

function useHighlight(code: string, language: string): Span[] | undefined {
  const [done, setDone] = useState<{ code: string; spans: Span[] }>()
  const wanted = highlightable.test(language) && code.length <= maxHighlighted
  useEffect(() => {
    if (!wanted) return
    let stale = false
    void import('./highlight').then(({ highlight }) => {
      if (!stale) setDone({ code, spans: highlight(code, language.toLowerCase()) })
    })
    return () => {
      stale = true
    }
  }, [code, language, wanted])
  return wanted && done?.code === code ? done.spans : undefined
}
