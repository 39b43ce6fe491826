// A question with much text in a small window: what is asked and every answer are in sight, and the text can be read by key.
import assert from 'node:assert/strict'
import { finish, log, say, signIn, test } from './app.mjs'

await test(async () => {
  const page = await signIn()
  await page.setViewportSize({ width: 900, height: 600 })
  for (const i of [0, 1]) { // the second one stays, to be looked at
    await say(page, `${i} wide`)
    const card = page.getByRole('group', { name: /^Permission: / })
    await card.getByText('host-39.example.com').first().waitFor({ state: 'attached' })
    await page.waitForTimeout(300)
    for (const button of await card.getByRole('button', { name: /allow/i }).all()) {
      const box = await button.boundingBox()
      assert(box && box.x >= 0 && box.y >= 0 && box.x + box.width <= 900 && box.y + box.height <= 600, `${await button.innerText()} is out of sight: ${JSON.stringify(box)}`)
      assert(box.height >= 24, 'a button is too small to hit')
    }
    await card.getByRole('region', { name: 'Details' }).focus()
    await page.keyboard.press('End')
    const end = card.getByText('host-39.example.com').last()
    await assert.doesNotReject(end.click({ trial: true }))
    if (i > 0) continue
    await card.getByRole('button', { name: /Do not allow/ }).click()
    await log(page).getByText(`done ${i} wide`).waitFor()
  }
  await page.getByRole('group', { name: /^Permission: / }).getByRole('button', { name: /until Tendril is restarted/ }).first().waitFor()
  await finish(page)
})
