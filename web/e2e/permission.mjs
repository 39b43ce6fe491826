// A question: it takes no focus and no key, is denied, and allowed.
import assert from 'node:assert/strict'
import { finish, log, message, say, signIn, test } from './app.mjs'

await test(async () => {
  const page = await signIn()
  await say(page, '1 ask')
  const card = page.getByRole('group', { name: /^Permission: / })
  await card.waitFor()
  await card.getByText('any public host').first().waitFor()
  await message(page).pressSequentially('yes 1 ado')
  await page.keyboard.press('Enter')
  await page.waitForTimeout(300)
  assert.equal(await card.count(), 1)
  assert.equal(await message(page).inputValue(), 'yes 1 ado')
  await card.getByRole('button', { name: /Do not allow/ }).click()
  await log(page).getByText('done 1 ask').waitFor()
  await say(page, '2 ask')
  await card.waitFor()
  await page.keyboard.press('F6')
  await page.keyboard.press('o')
  await log(page).getByText('done 2 ask').waitFor()
  assert.equal(await card.count(), 0)
  await finish(page)
})
