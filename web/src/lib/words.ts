// What the host says, in the words of the app.

/** What went wrong, as a sentence. A first word that is an address, a path or a name stays as it is. */
export function sentence(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  const first = /^\S*[/._\\]\S/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?…]$/.test(first) ? first : `${first}.`
}

const inTerminal = /[;,(][^;(]*(?:`?\btendril (?:config|secret|setup|doctor|model|run)\b| --[a-z])[\s\S]*$/

/** The same without what to type in a terminal: the app has fields and buttons for that. */
export function plain(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return sentence(text.replace(/^(?:not saved: )?(?:\S+\.json: )?/, '').replace(inTerminal, '').trim())
}

/** The name of the key that a text misses, such as OPENAI_API_KEY. */
export function missingKey(text: string): string | undefined {
  return /needs a key, and ([A-Z][A-Z0-9_]*) is not set/.exec(text)?.[1]
}

/** A host as a person knows it. */
export const hostName = (host: string): string => (host === '*' ? 'any public host' : host)

/** A refusal that was written for the model, for the person whose doing it was. */
export function refusal(text: string): string {
  return text
    .replace(/^(?:permissions: )?a person did not allow \S+ /i, 'you did not allow ')
    .replace(/^there is no capability "?([^";]+)"?;[\s\S]*/, 'there is no such capability')
}
