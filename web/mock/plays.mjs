// What the mock does with a prompt. Words in it choose the play: "permission", "slow", "fail", "fence", else everything.

import * as content from './content.mjs'

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
let calls = 0

export async function play(host, s, text) {
  let stop
  const stopped = new Promise((done) => {
    s.cancel = () => done((stop = 'cancelled'))
    s.interrupt = () => done((stop = 'interrupted'))
  })
  const pause = (ms) => Promise.race([sleep(ms), stopped])
  const wait = (waiting) => {
    s.waiting = waiting
    host.session(s)
  }
  const add = (item) => {
    host.item(s, s.items.length, item)
    return s.items.length - 1
  }
  const say = async (words, ms) => {
    const index = add({ type: 'agent', text: '' })
    for (let i = 0; i < words.length && !stop; i += 14) {
      host.append(s, index, words.slice(i, i + 14))
      await pause(ms)
    }
  }
  s.running = true
  s.since = new Date().toISOString()
  add({ type: 'user', text })
  wait('model')
  const started = Date.now()
  await pause(500)
  for (const scene of scenes(text)) if (!stop) await scene({ host, s, add, say, pause, wait, stopped: () => stop })
  s.running = false
  s.waiting = s.since = undefined
  s.permissions = []
  s.usage = content.usage
  s.updated = new Date().toISOString()
  const failed = !stop && /fail/i.test(text)
  add(content.end(stop ?? (failed ? 'error' : 'end_turn'), { durationMs: Date.now() - started, ...(failed && { error: { kind: 'credentials', message: 'openai: the credentials were refused: Incorrect API key provided', hint: 'check OPENAI_API_KEY' } }) }))
  host.session(s)
  host.emit('sessions', {})
}

function scenes(text) {
  if (/slow/i.test(text)) return [think, running(60_000)]
  if (/permission/i.test(text)) return [list, permission, answer]
  if (/fail/i.test(text)) return [list]
  if (/fence/i.test(text)) return [fence]
  return [think, list, build, running(900), answer]
}

async function think({ s, add, host, pause, stopped }) {
  const index = add({ type: 'thought', text: '' })
  for (const word of 'I look for a capability first, and build one only if none fits.'.split(/(?<= )/)) {
    if (stopped()) return
    host.append(s, index, word)
    await pause(30)
  }
}

async function list({ s, add, host, pause }) {
  const done = content.list(`m${++calls}`)
  const index = add({ type: 'tool', tool: { ...done.tool, status: 'running', output: undefined, detail: undefined, started: new Date().toISOString() } })
  await pause(200)
  host.item(s, index, done)
}

async function build({ s, add, host, pause, wait, stopped }) {
  wait('gate')
  const done = content.register(`m${++calls}`)
  const tool = { ...done.tool, status: 'running', output: undefined, detail: undefined, durationMs: undefined, started: new Date().toISOString(), steps: [] }
  const index = add({ type: 'tool', tool })
  for (const step of done.tool.steps) {
    const before = s.items[index].tool.steps
    host.item(s, index, { type: 'tool', tool: { ...tool, steps: [...before, { step: step.step, state: 'running' }] } })
    await pause(700)
    if (stopped()) return
    host.item(s, index, { type: 'tool', tool: { ...tool, steps: [...before, step] } })
  }
  host.item(s, index, done)
}

const running = (ms) => async ({ s, add, host, pause, wait, stopped }) => {
  wait('sandbox')
  const done = content.execute(`m${++calls}`)
  const tool = { ...done.tool, status: 'running', output: undefined, detail: undefined, durationMs: undefined, started: new Date().toISOString(), lines: ['reading notes/ideas.md', 'reading notes/reise.txt'] }
  const index = add({ type: 'tool', tool })
  await pause(ms)
  if (!stopped()) host.item(s, index, done)
}

async function permission({ s, add, host, wait, stopped, pause }) {
  wait('you')
  const done = content.execute(`m${++calls}`, { name: 'fetch_url', input: { name: 'fetch_url', args: { url: 'https://example.com/' } }, output: 'Example Domain' })
  const index = add({ type: 'tool', tool: { ...done.tool, status: 'waiting', output: undefined, durationMs: undefined, started: new Date().toISOString() } })
  const decided = new Promise((done) => (s.decided = done))
  s.permissions = [content.permission(`p${++calls}`)]
  host.session(s)
  const option = await Promise.race([decided, pause(600_000)])
  if (stopped()) return
  host.item(s, index, option === 'deny' ? { type: 'tool', tool: { ...done.tool, status: 'failed', output: 'permissions: a person did not allow fetch_url network access to *' } } : done)
}

async function answer({ say, wait }) {
  wait('model')
  await say(content.answer, 25)
}

async function fence({ say }) {
  const lines = Array.from({ length: 250 }, (_, i) => `const value${i} = compute("${i}", { retries: ${i % 5} }) // ${i}`).join('\n')
  await say(`Here it is:\n\n\`\`\`ts\n${lines}\n\`\`\`\n\nThat is all, at $5.`, 3)
}
