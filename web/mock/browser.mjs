// Opens Debian's Chromium for looking at the mock host; reports what the page complains about.

import { chromium } from 'playwright-core'

const args = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']

export async function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args })
}

/** A page in a fresh profile. Complaints and requests to other hosts land in problems. */
export async function page(browser, { dark = false, size = [1280, 800], base, problems }) {
  const context = await browser.newContext({ colorScheme: dark ? 'dark' : 'light', viewport: { width: size[0], height: size[1] } })
  const p = await context.newPage()
  p.on('console', (m) => ['error', 'warning'].includes(m.type()) && problems.push(`${m.type()}: ${m.text()}`))
  p.on('pageerror', (e) => problems.push(`page: ${e.message}`))
  p.on('request', (r) => !r.url().startsWith(base) && problems.push(`request: ${r.url()}`))
  return p
}
