// What all browser tests share: a real Chromium at the link of a real host.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { chromium } from 'playwright-core'

const { LINK, HOST_PID, CHROMIUM, SHOTS } = process.env

export const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
})

/** Pages that report what a person must never meet: errors, violations, requests to others. */
export const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
context.setDefaultTimeout(60_000)
export const trouble = []
export const allowed = new Set() // statuses that a test brings about
const origin = new URL(LINK).origin

export async function open(url = origin + '/') {
  const page = await context.newPage()
  page.on('pageerror', (e) => trouble.push(`error: ${e.stack}`))
  page.on('dialog', (d) => { trouble.push(`dialog: ${d.message()}`); void d.dismiss() })
  page.on('console', (m) => {
    const refused = /status of (\d+)/.exec(m.text())
    if (m.type() === 'error' && !(refused && allowed.has(Number(refused[1]))) && !(m.text().includes('ERR_') && allowed.has('network'))) trouble.push(`console: ${m.text()}`)
  })
  page.on('request', (r) => {
    const { protocol, origin: to } = new URL(r.url())
    if (protocol !== 'data:' && protocol !== 'blob:' && to !== origin) trouble.push(`request to ${r.url()}`)
  })
  await page.goto(url)
  return page
}

/** The first page: it opens the link. */
export const signIn = () => open(LINK)

export const message = (page) => page.getByRole('textbox', { name: 'Message to Tendril' })

export async function say(page, text) {
  await message(page).fill(text)
  await message(page).press('Enter')
}

export const log = (page) => page.getByRole('log', { name: 'Conversation' })

/** Waits until something is true. */
export async function until(what, check) {
  for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((r) => setTimeout(r, 20))) if (await check()) return
  assert.fail(`never: ${what}`)
}

/** Ends the agent as a crash would. */
export function killAgent() {
  const children = readdirSync(`/proc/${HOST_PID}/task`).flatMap((t) => readFileSync(`/proc/${HOST_PID}/task/${t}/children`, 'utf8').trim().split(/\s+/))
  process.kill(Number(children.find(Boolean)), 'SIGKILL')
}

export async function finish(page) {
  await page.evaluate(() => document.fonts.ready)
  if (SHOTS) await page.screenshot({ path: `${SHOTS}.png` })
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
  assert(!wide, 'the page scrolls sideways')
  assert.deepEqual(trouble, [])
  await browser.close()
}

/** Runs a test; on a failure the page is shown as it was. */
export async function test(run) {
  try {
    await run()
  } catch (e) {
    for (const page of context.pages()) {
      console.error(page.url(), '\n', await page.locator('body').innerText().catch(() => ''))
      if (SHOTS) await page.screenshot({ path: `${SHOTS}-failed.png` }).catch(() => {})
    }
    console.error(trouble.join('\n'))
    console.error(e)
    await browser.close()
    process.exit(1)
  }
}
