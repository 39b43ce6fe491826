// A host for looking at the user interface without the real one: it serves dist, and the API with
// scripted answers. It keeps nothing. Only for development: nothing of it is built or shipped.
//
//   node mock/server.mjs [port]     SETUP=1 begins with the first start
//
// POST /mock {"do": "crash" | "restarting" | "ready" | "epoch" | "signout" | "permission"} makes things happen.

import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as content from './content.mjs'
import { play } from './plays.mjs'

const dist = fileURLToPath(new URL('../dist', import.meta.url))
const port = Number(process.argv[2] ?? 4180)

let epoch = newEpoch()
let event = 0
let signedOut = false
const log = [] // of events, for resuming
const streams = new Set()
const sessions = new Map(content.sessions().map((s) => [s.id, s]))
const keys = new Map([['OPENAI_API_KEY', { name: 'OPENAI_API_KEY', provider: 'openai', places: ['keychain'] }], ['ANTHROPIC_API_KEY', { name: 'ANTHROPIC_API_KEY', provider: 'anthropic', places: ['environment', 'file'], shadowed: true }]])
const state = {
  agent: { status: 'ready', since: new Date().toISOString(), restarts: 0 },
  setupNeeded: Boolean(process.env.SETUP),
  deno: process.env.SETUP === '1' ? { error: 'deno was not found' } : { path: '/home/mara/.tendril/bin/deno-2.9.6/deno', version: '2.9.6', origin: 'the managed folder' },
  demo: process.env.DEMO === '1',
}

function newEpoch() {
  return Math.random().toString(36).slice(2, 10)
}

const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
const wire = ({ id, running, since, waiting, mode, permissions, usage }) => ({ id, running, since, waiting, mode, permissions, usage: usage ?? none })

const snapshot = () => ({
  version: '0.7.0', epoch, event, agent: state.agent, workspace: { path: '/home/mara/tendril-workspace', exists: true },
  model: { provider: 'anthropic', model: 'claude-sonnet-4-6', name: 'anthropic/claude-sonnet-4-6', reason: 'ANTHROPIC_API_KEY is set', contextWindow: 200_000 },
  demo: state.demo, deno: state.deno, setupNeeded: state.setupNeeded,
  sessions: [...sessions.values()].filter((s) => s.items.length > 0).slice(0, 3).map(wire),
})

export function emit(type, data) {
  const line = `id: ${epoch}-${++event}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`
  log.push({ n: event, line })
  if (log.length > 5000) log.shift()
  for (const stream of streams) stream.write(line)
}

const host = {
  emit,
  session: (s) => emit('session', wire(s)),
  item(s, index, item) {
    s.items[index] = item
    emit('item', { session: s.id, index, item })
  },
  append(s, index, text) {
    s.items[index] = { ...s.items[index], text: (s.items[index].text ?? '') + text }
    emit('append', { session: s.id, index, text })
  },
  agent(agent) {
    state.agent = { since: new Date().toISOString(), restarts: 0, ...agent }
    emit('agent', state.agent)
  },
}

const routes = [
  ['GET', /^\/api\/state$/, () => snapshot()],
  ['GET', /^\/api\/sessions$/, (_, __, url) => listSessions(url)],
  ['POST', /^\/api\/sessions$/, () => [201, { id: create('New session').id }]],
  ['GET', /^\/api\/sessions\/([^/]+)$/, ([id]) => withSession(id, (s) => ({ ...info(s), epoch, event, items: s.items, state: wire(s) }))],
  ['PATCH', /^\/api\/sessions\/([^/]+)$/, ([id], body) => withSession(id, (s) => ((s.title = body.title), host.session(s), emit('sessions', {}), [204]))],
  ['DELETE', /^\/api\/sessions\/([^/]+)$/, ([id]) => withSession(id, () => (sessions.delete(id), emit('sessions', {}), [204]))],
  ['POST', /^\/api\/sessions\/([^/]+)\/fork$/, ([id]) => withSession(id, (s) => [201, { id: create(`${s.title} (fork)`, structuredClone(s.items)).id }])],
  ['POST', /^\/api\/sessions\/([^/]+)\/prompt$/, ([id], body) => withSession(id, (s) => prompt(s, body.text))],
  ['POST', /^\/api\/sessions\/([^/]+)\/cancel$/, ([id]) => withSession(id, (s) => (s.cancel?.(), [204]))],
  ['POST', /^\/api\/sessions\/([^/]+)\/mode$/, ([id], body) => withSession(id, (s) => ((s.mode = body.mode), host.session(s), [204]))],
  ['POST', /^\/api\/sessions\/([^/]+)\/permissions\/([^/]+)$/, ([id, p], body) => withSession(id, (s) => decide(s, p, body.option))],
  ['GET', /^\/api\/sessions\/([^/]+)\/export$/, ([id]) => withSession(id, (s) => s.items)],
  ['POST', /^\/api\/agent\/restart$/, () => (host.agent({ status: 'starting' }), setTimeout(() => host.agent({ status: 'ready' }), 700), [204])],
  ['GET', /^\/api\/setup$/, () => process.env.SETUP === 'broken' ? [422, content.broken] : ({ needed: state.setupNeeded, fetching: false, workspace: { path: '/home/mara/tendril-workspace', exists: false }, deno: state.deno, model: { provider: 'anthropic', model: 'claude-sonnet-4-6', name: 'anthropic/claude-sonnet-4-6', reason: 'ANTHROPIC_API_KEY is set' }, providers: content.providers })],
  ['POST', /^\/api\/setup\/deno$/, () => (fetchDeno(), [202, {}])],
  ['POST', /^\/api\/setup\/workspace$/, (_, body) => ({ path: body.path, exists: false, error: ['/', '/etc'].includes(body.path) ? `${body.path} is a system folder; choose another` : undefined })],
  ['GET', /^\/api\/settings$/, () => ({ path: '/home/mara/.tendril/config.json', settings: content.settings, known: [], problems: [], warnings: [{ path: 'model.openai.baseURL', text: 'sends your key unencrypted over the network; use https' }] })],
  ['PUT', /^\/api\/settings$/, (_, body) => saveSettings(body)],
  ['GET', /^\/api\/providers$/, () => ({ providers: content.providers })],
  ['GET', /^\/api\/models$/, (_, __, url) => ({ provider: url.searchParams.get('provider'), source: 'the provider', models: content.models[url.searchParams.get('provider')] ?? [], warning: content.models[url.searchParams.get('provider')] ? undefined : 'the provider could not be asked: there is no key' })],
  ['GET', /^\/api\/capabilities\/([^/]+)$/, ([name]) => ({ ...content.capability, name })],
  ['GET', /^\/api\/keys$/, () => ({ keys: [...keys.values()] })],
  ['PUT', /^\/api\/keys\/([^/]+)$/, ([name]) => (keys.set(name, { name, provider: content.providers.find((p) => p.keyEnv === name)?.id, places: ['file'] }), emit('settings', {}), { place: 'file', warning: 'there is no keychain: the key is in ~/.tendril/secrets.json, readable by you alone and not encrypted' })],
  ['DELETE', /^\/api\/keys\/([^/]+)$/, ([name]) => (keys.delete(name), emit('settings', {}), [204])],
  ['POST', /^\/api\/keys\/([^/]+)\/test$/, async (_, body) => (await sleep(600), body.value?.includes('bad') ? { ok: false, message: 'the provider refused the key (401)' } : { ok: true, message: 'the key works', model: 'claude-sonnet-4-6' })],
  ['GET', /^\/api\/doctor$/, async () => (await sleep(400), { ok: false, checks: content.checks })],
  ['POST', /^\/mock$/, (_, body) => mock(body)],
]

function withSession(id, f) {
  const s = sessions.get(id)
  return s ? f(s) : [404, { detail: `there is no session ${id}` }]
}

const info = ({ id, title, created, updated }) => ({ id, title, created, updated, turns: 1, client: 'app', folder: '/home/mara/tendril-workspace' })

function create(title, items = []) {
  const now = new Date().toISOString()
  const s = { id: `s${Math.random().toString(36).slice(2, 9)}`, title, created: now, updated: now, items, mode: 'policy', permissions: [], running: false }
  sessions.set(s.id, s)
  host.session(s)
  emit('sessions', {})
  return s
}

function listSessions(url) {
  const query = (url.searchParams.get('query') ?? '').toLowerCase()
  const list = [...sessions.values()].filter((s) => s.items.length > 0 || !query).sort((a, b) => b.updated.localeCompare(a.updated))
  const found = list.flatMap((s) => {
    const match = query && s.items.find((i) => i.text?.toLowerCase().includes(query))?.text
    if (query && !match && !s.title.toLowerCase().includes(query)) return []
    const at = match ? match.toLowerCase().indexOf(query) : 0
    return [{ ...info(s), match: match ? `…${match.slice(Math.max(0, at - 20), at + 60)}…` : undefined }]
  })
  return { sessions: found }
}

function prompt(s, text) {
  if (s.running) return [409, { code: 'busy', detail: 'a turn runs in this session' }]
  if (state.agent.status !== 'ready') return [503, { code: 'agent', detail: 'the agent is not ready' }]
  if (s.title === 'New session') s.title = text.split('\n')[0].slice(0, 80)
  s.updated = new Date().toISOString()
  void play(host, s, text)
  emit('sessions', {})
  return [202, {}]
}

function decide(s, id, option) {
  const permission = s.permissions.find((p) => p.id === id)
  if (!permission) return [409, { code: 'gone', detail: 'that was answered already' }]
  s.permissions = s.permissions.filter((p) => p !== permission)
  host.session(s)
  s.decided?.(option)
  return [204]
}

async function saveSettings({ changes, interrupt }) {
  await sleep(500)
  const running = [...sessions.values()].filter((s) => s.running)
  if (running.length > 0 && !interrupt) return [409, { code: 'running', detail: 'a turn runs', sessions: running.map((s) => s.id) }]
  const deployment = changes.find((c) => c.path === 'model.azure.modelId')?.value
  if (deployment === 'refused') return [422, { code: 'refused', detail: 'an agent with these settings would not work, so they are not saved: no', problems: [{ path: 'model', text: 'azure/refused cannot be used; set it with: tendril config set model.azure.modelId my-deployment' }] }]
  if (changes.some((c) => c.value === 'nokey')) return [422, { code: 'refused', detail: 'an agent with these settings would not work', problems: [{ path: 'model', text: 'openai/nokey needs a key, and OPENAI_API_KEY is not set; keep it with: tendril secret set OPENAI_API_KEY; or for this shell: export …' }] }]
  const problems = changes.flatMap(({ path, value }) => {
    if (typeof value === 'number' && value <= 0) return [{ path, text: 'must be a positive number' }]
    if (path.endsWith('baseURL') && value && !String(value).startsWith('http')) return [{ path, text: 'is no URL; it looks like https://NAME.openai.azure.com/openai/v1' }]
    return []
  })
  if (problems.length > 0) return [422, { code: 'refused', detail: 'these settings do not work; nothing was changed', problems }]
  for (const { path, value } of changes) {
    const parts = path.split('.')
    const last = parts.pop()
    let at = content.settings
    for (const part of parts) at = at[part] ??= {}
    if (value === null) delete at[last]
    else at[last] = value
  }
  if (changes.some((c) => c.path === 'model.provider')) state.demo = content.settings.model.provider === 'demo'
  state.setupNeeded = false
  emit('settings', {})
  event++
  epoch = newEpoch()
  event = 0
  log.length = 0
  broadcastSnapshot()
  return { warnings: [] }
}

async function fetchDeno() {
  emit('setup', { step: 'deno', state: 'running', text: 'fetching deno 2.9.6 with npm' })
  await sleep(2500)
  state.deno = { path: '/home/mara/.tendril/bin/deno-2.9.6/deno', version: '2.9.6', origin: 'the managed folder' }
  emit('setup', { step: 'deno', state: 'done', text: 'deno 2.9.6 is ready' })
}

function broadcastSnapshot() {
  for (const stream of streams) stream.write(snapshotEvent())
}

function mock(body) {
  if (body.do === 'crash') {
    for (const s of sessions.values()) s.interrupt?.()
    host.agent({ status: 'failed', restarts: 3, error: 'it crashed three times within 30 seconds; the last time with exit status 2', stderr: content.stderr })
  }
  if (body.do === 'restarting') host.agent({ status: 'restarting', restarts: 1, error: 'it ended with exit status 2', stderr: content.stderr })
  if (body.do === 'ready') host.agent({ status: 'ready' })
  if (body.do === 'signout') signedOut = true
  if (body.do === 'signin') signedOut = false
  if (body.do === 'drop') for (const stream of streams) stream.end()
  if (body.do === 'epoch') ((epoch = newEpoch()), (event = 0), (log.length = 0), broadcastSnapshot())
  return {}
}

const snapshotEvent = () => `id: ${epoch}-${event}\nevent: snapshot\ndata: ${JSON.stringify(snapshot())}\n\n`

function stream(request, response) {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
  const last = request.headers['last-event-id'] ?? ''
  const [, lastEpoch, n] = /^(.*)-(\d+)$/.exec(last) ?? []
  const missed = log.filter((e) => e.n > Number(n))
  if (lastEpoch === epoch && (missed.length === 0 ? Number(n) === event : missed[0].n === Number(n) + 1)) response.write(missed.map((e) => e.line).join('') || ': ok\n\n')
  else response.write(snapshotEvent())
  streams.add(response)
  request.on('close', () => streams.delete(response))
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.woff2': 'font/woff2' }
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

async function file(url, response) {
  const path = url.pathname === '/' ? '/index.html' : normalize(url.pathname)
  try {
    const data = await readFile(join(dist, path))
    response.writeHead(200, { 'Content-Type': types[extname(path)] ?? 'application/octet-stream', 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer', 'X-Content-Type-Options': 'nosniff' })
    response.end(data)
  } catch {
    response.writeHead(404).end('not found')
  }
}

async function handle(request, response) {
  const url = new URL(request.url, 'http://mock')
  if (!url.pathname.startsWith('/api/') && url.pathname !== '/mock') return file(url, response)
  if (signedOut && url.pathname !== '/mock') return reply(response, 401, { detail: 'this window is not signed in', login: process.env.LOGIN })
  if (url.pathname === '/api/events') return stream(request, response)
  let text = ''
  for await (const chunk of request) text += chunk
  if (url.pathname === '/api/login') return reply(response, 200, { token: 'mock-token' })
  for (const [method, pattern, answer] of routes) {
    const match = method === request.method && pattern.exec(url.pathname)
    if (!match) continue
    const result = await answer(match.slice(1).map(decodeURIComponent), text ? JSON.parse(text) : {}, url)
    return Array.isArray(result) && typeof result[0] === 'number' ? reply(response, result[0], result[1]) : reply(response, 200, result)
  }
  return reply(response, 404, { detail: `there is no ${url.pathname}` })
}

function reply(response, status, body) {
  response.writeHead(status, { 'Content-Type': status < 400 ? 'application/json' : 'application/problem+json' })
  response.end(body === undefined ? '' : JSON.stringify(status < 400 ? body : { status, ...body }))
}

createServer((request, response) => void handle(request, response)).listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}/`))
setInterval(() => streams.forEach((s) => s.write(': beat\n\n')), 15_000).unref()
