// Takes pictures of every state, in both themes and sizes, from the mock host: node mock/shots.mjs [name…]

import { spawn } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { launch, page } from './browser.mjs'

const folder = fileURLToPath(new URL('../.shots', import.meta.url))
const port = 4300 + (process.pid % 500)
const base = `http://127.0.0.1:${port}/`
const only = process.argv.slice(2)
const problems = []

const go = (hash) => async (p) => {
  await p.goto(base + hash)
  await p.waitForTimeout(600)
}
const mock = (what) => p => p.evaluate((what) => fetch('/mock', { method: 'POST', body: JSON.stringify({ do: what }) }), what).then(() => p.waitForTimeout(300))
const send = (text, ms) => async (p) => {
  await p.fill('.composer textarea', text)
  await p.keyboard.press('Enter')
  await p.waitForTimeout(ms)
}
const click = (selector, ms = 300) => async (p) => {
  await p.click(selector)
  await p.waitForTimeout(ms)
}

const small = { size: [900, 600] }
const narrow = { size: [400, 800] }
// QUICK=1: only two of them
const looks = process.env.QUICK ? [{}, { ...narrow, dark: true }] : [{}, { dark: true }, small, { ...small, dark: true }, narrow, { ...narrow, dark: true }]
const own = click('text=With a key or an endpoint of your own')
const provider = (id) => (p) => p.selectOption('.step-body select', id)

const shots = {
  empty: [go('#/chat')],
  done: [go('#/chat/words')],
  open: [go('#/chat/words'), click('.thought .disclose'), click('.folded .tool-row'), click('.folded-list .tool-built .tool-row'), click('.tool-failed .tool-row'), async (p) => p.evaluate(() => (document.querySelector('.transcript').scrollTop = 0)), (p) => p.waitForTimeout(300)],
  failed: [go('#/chat/failed')],
  stopped: [go('#/chat/stopped')],
  long: [go('#/chat/long'), (p) => p.mouse.move(700, 400), (p) => p.mouse.wheel(0, -900), (p) => p.waitForTimeout(400)],
  building: [go('#/chat'), send('How many words are in my text files?', 2700)],
  running: [go('#/chat'), send('slow: how many words?', 2200)],
  permission: [go('#/chat'), send('permission please', 1400)],
  ended: [go('#/chat'), send('fail, please', 1400)],
  finished: [go('#/chat'), send('How many words are in my text files?', 7500)],
  menu: [go('#/chat/words'), click('.chat-head .session-menu')],
  delete: [go('#/chat/words'), click('.chat-head .session-menu'), click('.menu-danger')],
  search: [go('#/chat/words'), (p) => p.keyboard.press('Control+k'), (p) => p.waitForTimeout(200), (p) => p.keyboard.type('京都'), (p) => p.waitForTimeout(600)],
  crash: [go('#/chat/words'), mock('crash')],
  restarting: [go('#/chat/words'), mock('restarting')],
  settings: [go('#/settings/model'), (p) => p.waitForTimeout(900)],
  keys: [go('#/settings/keys')],
  sandbox: [go('#/settings/sandbox')],
  bounds: [go('#/settings/bounds')],
  places: [go('#/settings/places')],
  doctor: [go('#/settings/doctor'), (p) => p.waitForTimeout(600)],
  unsaved: [go('#/settings/bounds'), (p) => p.fill('input[type=number] >> nth=0', '-3'), click('.save-bar .btn-primary', 900)],
  signedout: [go('#/chat'), mock('signout'), mock('drop'), (p) => p.waitForTimeout(4500)],
  setup: [go('')],
  setupfetch: [go(''), click('text=Fetch Deno', 1200)],
  setupkey: [go(''), own, (p) => p.fill('input[type=password]', 'sk-bad'), click('button:text-is("Test")', 1500)],
  setupown: [go(''), own, provider('compatible'), (p) => p.fill('input[placeholder*="1234"]', 'http://localhost:1234/v1')],
  setupwrong: [go(''), click('text=Fetch Deno', 3200), own, provider('azure'), (p) => p.fill('input[placeholder*="NAME"]', 'https://x.openai.azure.com/openai/v1'), (p) => p.fill('input[type=password]', 'k'), (p) => p.fill('input[placeholder="my-deployment"]', 'refused'), click('.btn-primary', 1200)],
  setupfolder: [go(''), click('text=Workspace'), (p) => p.fill('.step-body input', '/etc'), click('.step-body button[type=submit]', 500)],
  setuprefused: [go(''), click('text=Workspace'), (p) => p.fill('.step-body input', '/etc'), click('.step-body button[type=submit]', 500), click('.step-failed .step-head')],
  setupbroken: [go('')],
  nokey: [go('#/settings/model'), (p) => p.fill('.field input.mono', 'nokey'), click('.save-bar .btn-primary', 1200)],
  denied: [go('#/chat'), send('permission please', 1400), click('.permission-buttons button >> nth=0', 1500)],
}

const browser = await launch()
await mkdir(folder, { recursive: true })
for (const [name, steps] of Object.entries(shots)) {
  if (only.length > 0 && !only.includes(name)) continue
  for (const look of looks) {
    const host = spawn(process.execPath, [fileURLToPath(new URL('server.mjs', import.meta.url)), String(port)], { env: { ...process.env, SETUP: name === 'setupbroken' ? 'broken' : name.startsWith('setup') ? '1' : '' }, stdio: ['ignore', 'pipe', 'inherit'] })
    await new Promise((ready) => host.stdout.once('data', ready))
    const p = await page(browser, { ...look, base, problems })
    const file = `${name}-${look.size?.[0] ?? 1280}-${look.dark ? 'dark' : 'light'}.png`
    try {
      for (const step of steps) await step(p)
      await p.screenshot({ path: `${folder}/${file}` })
      const wide = await p.evaluate(() => document.documentElement.scrollWidth - innerWidth)
      if (wide > 0) problems.push(`${file}: ${wide} px too wide`)
    } catch (error) {
      problems.push(`${file}: ${error.message.split('\n')[0]}`)
    }
    await p.context().close()
    host.kill()
  }
}
await browser.close()
console.log(problems.length ? [...new Set(problems)].join('\n') : 'no complaints')
