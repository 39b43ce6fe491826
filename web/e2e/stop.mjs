// Stop, by the button and by Esc: partial text stays, and the next prompt works.
import assert from 'node:assert/strict'
import { finish, log, say, signIn, test } from './app.mjs'

await test(async () => {
  const page = await signIn()
  await say(page, '1 hang')
  await log(page).getByText('half of 1 hang').waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await log(page).getByText(/stopped/i).first().waitFor()
  assert.equal(await log(page).getByText('half of 1 hang').count(), 1)
  await say(page, '2 hang')
  await log(page).getByText('half of 2 hang').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor()
  await say(page, '3 say')
  await log(page).getByText('answer to 3 say').waitFor()
  await finish(page)
})
