// What the mock host shows: sessions with everything in them, and what it answers.

const ago = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString()

export const usage = { contextWindow: 200_000, contextTokens: 31_400, input: 21_300, output: 2_900, cacheRead: 48_000, cacheWrite: 6_100, costUSD: 0.1384 }

const code = `// Counts words in the text files of the workspace.
interface Args {
  folder?: string
  extensions?: string[]
}

export default async function ({ folder = ".", extensions = [".txt", ".md"] }: Args) {
  const counts: Record<string, number> = {}
  for await (const entry of Deno.readDir(folder)) {
    if (!entry.isFile || !extensions.some((e) => entry.name.endsWith(e))) continue
    const text = await Deno.readTextFile(\`\${folder}/\${entry.name}\`)
    counts[entry.name] = text.match(/\\p{L}+/gu)?.length ?? 0 // letters of any script
  }
  return { counts, total: Object.values(counts).reduce((a, b) => a + b, 0) }
}
`

export const steps = (failing) => [
  { step: 'shape', state: 'passed', durationMs: 2 },
  { step: 'modules', state: 'passed', durationMs: 38 },
  { step: 'permissions', state: 'passed', durationMs: 1 },
  failing
    ? { step: 'types', state: 'failed', note: "count_words.ts:11:12: Type 'string' is not assignable to type 'number'.", durationMs: 812 }
    : { step: 'types', state: 'passed', durationMs: 641 },
]

const definition = {
  name: 'count_words',
  capability: 'Counts the words in text files of a folder, each and in total.',
  triggers: ['the user asks how long texts are', 'a word count is needed'],
  suppression: ['counting lines or bytes'],
  parameters: { type: 'object', properties: { folder: { type: 'string' } } },
}

export const list = (id, query = 'count words in text files') => ({
  type: 'tool',
  tool: { id, tool: 'listCapabilities', status: 'done', input: { query }, output: '{"capabilities":[],"total":14,"shown":0}', detail: { total: 14, shown: 0 }, durationMs: 4 },
})

export const register = (id, failing = false) => ({
  type: 'tool',
  tool: {
    id,
    tool: 'registerCapability',
    name: 'count_words',
    status: failing ? 'failed' : 'done',
    input: { definition, code },
    output: failing
      ? "the gate refused count_words at types:\n\ncount_words.ts:11:12: error TS2322: Type 'string' is not assignable to type 'number'.\n    counts[entry.name] = text\n    ~~~~~~~~~~~~~~~~~~\n\nmend this and register it again"
      : 'Kept as count_words 1.0.0 (active)',
    steps: steps(failing),
    detail: failing ? undefined : { name: 'count_words', version: '1.0.0', status: 'active', grants: { net: ['api.example.com', 'cdn.example.org'], read: ['the workspace'], write: [], secrets: [] }, warnings: [] },
    durationMs: failing ? 853 : 682,
  },
})

export const execute = (id, more = {}) => ({
  type: 'tool',
  tool: {
    id,
    tool: 'execute',
    name: 'count_words',
    status: 'done',
    input: { name: 'count_words', args: { folder: 'notes', extensions: ['.txt', '.md'] } },
    output: '{\n  "counts": {\n    "ideas.md": 412,\n    "reise.txt": 1280,\n    "日記.txt": 87\n  },\n  "total": 1779\n}',
    detail: { name: 'count_words', version: '1.0.0', outcome: 'ok', exit_code: 0 },
    durationMs: 94,
    ...more,
  },
})

export const end = (stop = 'end_turn', more = {}) => ({
  type: 'turn',
  turn: { number: 1, stop, usage: { input: 8_100, output: 640, cacheRead: 12_000, cacheWrite: 900, costUSD: 0.0412 }, durationMs: 12_480, modelCalls: 4, ...more },
})

export const answer = `Your text files have **1,779 words** in total.

| file | words | share |
|---|---:|---:|
| \`reise.txt\` | 1,280 | 72 % |
| \`ideas.md\` | 412 | 23 % |
| \`日記.txt\` | 87 | 5 % |

The Japanese diary counts characters between spaces as one word, so its number is too low.`

const rich = `## What was found

The three files use *different* encodings, and one has a byte order mark. See [the Unicode FAQ](https://unicode.org/faq/utf_bom.html); [this one](javascript:alert(1)) is no link, and ![a tracker](https://attacker.example/pixel.png) is not loaded.

1. Read the file as bytes
2. Look at the first three:
   - \`EF BB BF\` is UTF-8
   - \`FF FE\` is UTF-16
3. Decode it

> Costs $5 to $6 a month, says the invoice; ~~that is all~~ plus VAT.

\`\`\`ts
export async function read(path: string): Promise<string> {
  const bytes = await Deno.readFile(path) // a Uint8Array
  const label = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : "utf-8"
  return new TextDecoder(label, { fatal: true, ignoreBOM: false }).decode(bytes)
}
\`\`\`

- [x] Latin
- [ ] Kana: ひらがなとカタカナ
- A plain one beside them
  - and one below it

<b onclick="alert(1)">raw HTML stays text</b>`

export const rich_ = rich

export const permission = (id = 'p1') => ({
  id,
  callId: 't9',
  title: 'Allow fetch_url network access to example.com, api.example.org?',
  text: 'Allow fetch_url network access to example.com, api.example.org?\n\nThe model says that it does this: “Fetches a page and returns its text without markup.”',
  capability: 'fetch_url',
  hosts: ['example.com', 'api.example.org'],
  options: [
    { id: 'once', name: 'Allow until Tendril is restarted', kind: 'allow_once' },
    { id: 'always', name: 'Always allow', kind: 'allow_always' },
    { id: 'deny', name: 'Do not allow', kind: 'reject_once' },
  ],
})

const user = (text) => ({ type: 'user', text })
const agent = (text) => ({ type: 'agent', text })

export function sessions() {
  const make = (id, title, minutes, items, more = {}) => ({ id, title, client: 'app', folder: '/home/mara/tendril-workspace', turns: 1, created: ago(minutes + 5), updated: ago(minutes), items, mode: 'policy', permissions: [], running: false, usage, ...more })
  return [
    make('words', 'How many words are in my text files?', 3, [
      user('How many words are in my text files?'),
      { type: 'thought', text: 'The user wants a word count. I look for a capability that **counts words** first; if there is none I build one that works for any folder, not only for this request.' },
      list('t1'), register('t2', true), register('t3'), execute('t4'), agent(answer), end(),
      user('And the encodings?'), execute('t5', { name: 'read_encodings', input: { name: 'read_encodings', args: { folder: '.' } }, output: 'utf-8, utf-8 with BOM, utf-16le', durationMs: 51 }), agent(rich), end('end_turn', { usage: { input: 900, output: 410, cacheRead: 20_700, cacheWrite: 0 } }),
    ]),
    make('failed', 'Steuerbescheid als PDF zusammenfassen', 44, [
      user('Fasse den Steuerbescheid zusammen: die Höhe der Nachzahlung, die Fristen und was ich tun muss.'),
      list('f1', 'read text of a PDF'),
      execute('f2', { name: 'read_pdf', status: 'failed', input: { name: 'read_pdf', args: { file: 'Bescheid 2024 (Änderung).pdf' } }, output: "NotFound: No such file or directory (os error 2): readfile 'Bescheid 2024 (Änderung).pdf'\n    at read_pdf.ts:14:22", detail: { stderr: 'warning: the font Helvetica is not embedded\nwarning: 2 annotations were skipped' }, durationMs: 61 }),
      agent('The file is not there. I look'),
      end('error', { error: { kind: 'overloaded', message: 'the provider is overloaded (529) and stayed so through 4 attempts', hint: 'wait a minute and send it again, or choose another model in Settings' } }),
    ]),
    make('stopped', '旅行の日程を表にまとめて', 60 * 20, [
      user('旅行の日程を表にまとめて、毎日の予算も計算してください。'),
      list('s1', 'itinerary table'), execute('s2', { name: 'read_calendar', status: 'running', output: undefined, durationMs: undefined, lines: ['reading 4月.ics'] }), agent('日程は次のとおりです。\n\n1. 京都、'), end('cancelled'),
      user('続けて'), agent('一日目は京都です。'), execute('s3', { name: 'sum_by_day', status: 'running', output: undefined, durationMs: undefined }), end('interrupted', { usage: undefined }),
    ]),
    make('long', 'Three hundred questions about one log file', 60 * 24 * 3, long(300)),
    make('empty1', 'Compare the two contracts', 60 * 24 * 4, [user('Compare'), agent('Done.'), end()]),
    make('empty2', 'Rename photos by the date they were taken, with a very long title that does not fit', 60 * 24 * 20, [user('Rename'), agent('Done.'), end()]),
    make('empty3', 'Which tasks are still open?', 60 * 24 * 60, [user('Which'), agent('Three.'), end()]),
  ]
}

function long(n) {
  const items = []
  for (let i = 1; i <= n; i++) {
    items.push(user(`Question ${i}: what happened at 0${i % 10}:15?`), list(`l${i}a`), execute(`l${i}b`), agent(`Answer ${i}. ${i % 7 === 0 ? rich : 'The service was **restarted** and came back after two seconds.'}`), end())
  }
  return items
}

export const stderr = [
  'panic: runtime error: invalid memory address or nil pointer dereference',
  '[signal SIGSEGV: segmentation violation code=0x1 addr=0x18 pc=0x7a1f20]',
  '',
  'goroutine 84 [running]:',
  'agent.(*Agent).turn(0xc0001a2000, {0x1f0a3c8, 0xc0004e8000})',
  '\tagent/turn.go:118 +0x2c5',
]

export const providers = [
  { id: 'anthropic', name: 'Anthropic', found: true, reason: 'ANTHROPIC_API_KEY is set', keyEnv: 'ANTHROPIC_API_KEY', model: 'claude-sonnet-4-6', needs: [] },
  { id: 'openai', name: 'OpenAI', found: false, keyEnv: 'OPENAI_API_KEY', model: 'gpt-5.1', needs: [] },
  { id: 'gemini', name: 'Google Gemini', found: false, keyEnv: 'GEMINI_API_KEY', model: 'gemini-2.5-pro', needs: [] },
  { id: 'openrouter', name: 'OpenRouter', found: false, keyEnv: 'OPENROUTER_API_KEY', model: 'anthropic/claude-sonnet-4.6', needs: [] },
  { id: 'azure', name: 'Azure OpenAI', found: false, keyEnv: 'AZURE_OPENAI_API_KEY', needs: ['baseURL'] },
  { id: 'bedrock', name: 'Amazon Bedrock', found: false, needs: ['region'] },
  { id: 'ollama', name: 'Ollama', found: true, reason: 'Ollama answers at http://localhost:11434', model: 'qwen3:8b', needs: ['host'] },
]

export const models = {
  anthropic: [
    { model: 'claude-sonnet-4-6', name: 'Claude Sonnet 4.6', context: 200_000, input: 3, output: 15, cacheRead: 0.3, tools: true, chosen: true },
    { model: 'claude-opus-4-6', name: 'Claude Opus 4.6', context: 200_000, input: 5, output: 25, cacheRead: 0.5, tools: true, chosen: false },
    { model: 'claude-haiku-4-5', name: 'Claude Haiku 4.5', context: 200_000, input: 1, output: 5, cacheRead: 0.1, tools: true, chosen: false },
  ],
  openai: [
    { model: 'gpt-5.1', name: 'GPT-5.1', context: 400_000, input: 1.25, output: 10, tools: true, chosen: true },
    { model: 'gpt-5.1-mini', name: 'GPT-5.1 mini', context: 400_000, input: 0.25, output: 2, tools: true, chosen: false },
  ],
  ollama: [
    { model: 'qwen3:8b', context: 40_960, tools: true, chosen: true },
    { model: 'gemma3:4b', context: 131_072, tools: false, chosen: false },
  ],
}

export const settings = {
  workspace: '~/tendril-workspace',
  model: { provider: 'anthropic', anthropic: { modelId: 'claude-sonnet-4-6' }, bedrock: { region: 'us-east-1' }, ollama: { host: 'http://localhost:11434', modelId: 'qwen3:8b' } },
  sandbox: { denoPath: 'deno', timeoutMs: 45000, allowedDomains: ['*.example.com', 'api.github.com'], policy: { network: 'auto' }, require: 'any' },
  registry: { maxCapabilities: 500 },
  agent: { maxTurns: 100, budget: { turnUSD: 0.5 } },
}

export const checks = [
  { name: 'settings', state: 'ok', text: '/home/mara/.tendril/config.json is valid' },
  { name: 'deno', state: 'ok', text: 'deno 2.9.6 at /home/mara/.tendril/bin/deno-2.9.6/deno' },
  { name: 'sandbox', state: 'ok', text: 'a program ran in 31 ms behind namespaces, seccomp and the egress proxy' },
  { name: 'workspace', state: 'ok', text: '/home/mara/tendril-workspace, 14 capabilities' },
  { name: 'secrets', state: 'warning', text: 'there is no keychain; keys are kept in ~/.tendril/secrets.json (0600, not encrypted)', hint: 'start a keychain such as gnome-keyring, then `tendril secret set` again' },
  { name: 'model', state: 'failed', text: 'ollama does not answer at http://localhost:11434', hint: 'start it with `ollama serve`, or choose another provider' },
]

export const capability = {
  name: 'fetch_url', definition: { ...definition, name: 'fetch_url' }, version: '1.0.0', status: 'active', source: code, grants: { net: [], read: ['the workspace'], write: ['notes'], approved: [] }, versions: [], gate: [], runs: 2, succeeded: 2, notes: [],
}

export const broken = { code: 'settings', detail: "/home/mara/.tendril/config.json: line 1, column 3: invalid character 'b' looking for beginning of object key string" }
