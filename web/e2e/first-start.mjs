// A blank profile: to the demo's answer in three clicks, and to its reuse.
import assert from 'node:assert/strict'
import { finish, log, message, signIn, test } from './app.mjs'

await test(async () => {
  const page = await signIn()
  await page.getByRole('heading', { name: 'Set up Tendril' }).waitFor()
  assert(!page.url().includes('code='), page.url())
  await page.getByRole('radio', { name: /Demo/ }).click()
  await page.getByRole('button', { name: 'Start', exact: true }).click()
  await page.getByRole('list', { name: 'Examples' }).getByRole('button', { name: /How many words/ }).click()
  if ((await message(page).inputValue()) !== '') await message(page).press('Enter')
  await log(page).getByText(/1 text file with 5 words/).first().waitFor()
  await log(page).getByText(/built count_words 1.0.0/).waitFor()
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor()
  await message(page).fill('How many words are in my text files?')
  await message(page).press('Enter')
  await page.getByText('How many words are in my text files?').nth(2).waitFor()
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor()
  await log(page).getByText(/Listed 1 capability, ran count_words/).waitFor()
  assert.equal(await log(page).getByText(/built count_words/).count(), 1)
  await finish(page)
})
