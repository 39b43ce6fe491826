// The agent dies in a turn: the turn is interrupted and can be sent again. Three
// crashes: what it printed, and Restart.
import assert from 'node:assert/strict'
import { allowed, finish, killAgent, log, message, say, signIn, test } from './app.mjs'

await test(async () => {
  allowed.add(503)
  const page = await signIn()
  await say(page, '1 hang')
  await log(page).getByText('half of 1 hang').waitFor()
  await message(page).fill('half a draft')
  killAgent()
  await log(page).getByText(/interrupted/i).first().waitFor()
  assert.equal(await message(page).inputValue(), 'half a draft')
  assert.equal(await log(page).getByText('half of 1 hang').count(), 1)
  const status = page.getByRole('contentinfo', { name: 'Status' })
  await status.getByText('Ready').waitFor()
  await log(page).getByRole('button', { name: /send again/i }).click()
  await log(page).getByText('half of 1 hang').nth(1).waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  for (let i = 0; i < 3; i++) {
    if (await page.getByRole('button', { name: 'Restart' }).isVisible()) break
    await status.getByText('Ready').waitFor()
    killAgent()
    await status.getByText('Ready').waitFor({ state: 'hidden' })
  }
  await page.getByRole('button', { name: 'Restart' }).click()
  await status.getByText('Ready').waitFor()
  await message(page).fill('')
  await say(page, '2 say')
  await log(page).getByText('answer to 2 say').waitFor()
  await finish(page)
})
