// Characters that a person cannot see, or that change the order of others, made visible.

// Controls but tab and newline, format characters (bidi, zero width, tags), odd spaces, lone surrogates.
const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\u2028\u2029\u00a0\u115f\u1160\u2000-\u200a\u202f\u205f\u3164\uffa0]/gu

/** Text with what is invisible in it as ⟨U+202E⟩. */
export function visible(text: string): string {
  return text.replace(hidden, (c) => (c === '\n' || c === '\t' ? c : `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`))
}

/** The same on one line. */
export function visibleLine(text: string): string {
  return visible(text.replace(/\s*\n\s*/g, ' ')).trim()
}
