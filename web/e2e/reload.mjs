// A reload in the middle of a stream, two tabs, a draft: nothing is lost or doubled.
import assert from 'node:assert/strict'
import { finish, log, message, open, say, signIn, test, until } from './app.mjs'

const count = (text) => text.split('word-').length - 1

await test(async () => {
  const page = await signIn()
  await say(page, '1 drip')
  await log(page).getByText('word-5 ').first().waitFor()
  const other = await open(page.url())
  await page.reload()
  await message(page).fill('half a draft')
  await until('both have all of it', async () => (await log(page).innerText()).includes('word-99') && (await log(other).innerText()).includes('word-99'))
  for (const tab of [page, other]) {
    assert.equal(count(await log(tab).innerText()), 100)
    assert.equal(await log(tab).getByText('1 drip').count(), 1)
  }
  await page.reload()
  await log(page).getByText('word-99').first().waitFor()
  assert.equal(await message(page).inputValue(), 'half a draft')
  await say(other, '2 say')
  await log(page).getByText('answer to 2 say').waitFor()
  await finish(page)
})
