// Colours code with Lezer. Loaded when the first code block appears.

import { classHighlighter, highlightCode } from '@lezer/highlight'
import { parser as javascript } from '@lezer/javascript'
import { parser as json } from '@lezer/json'

export interface Span {
  text: string
  className: string
}

/** Splits code into spans with the classes tok-keyword, tok-string and so on. */
export function highlight(code: string, language: string): Span[] {
  const spans: Span[] = []
  const add = (text: string, className: string) => {
    const last = spans[spans.length - 1]
    if (last && last.className === className) last.text += text
    else spans.push({ text, className })
  }
  highlightCode(code, parser(language).parse(code), classHighlighter, add, () => add('\n', ''))
  return spans
}

function parser(language: string) {
  if (language.startsWith('json')) return json
  if (language === 'tsx') return javascript.configure({ dialect: 'ts jsx' })
  if (language === 'jsx') return javascript.configure({ dialect: 'jsx' })
  return javascript.configure({ dialect: 'ts' })
}
