// What a model writes stays text: no script, no image from elsewhere, no link but https.
import assert from 'node:assert/strict'
import { finish, log, say, signIn, test } from './app.mjs'

await test(async () => {
  const page = await signIn()
  await say(page, '<img src=x onerror=alert(1)> evil')
  await log(page).getByText('the end of it').waitFor()
  for (let i = 0; i < 2; i++) {
    assert.equal(await page.locator('img[src*="attacker"], script:not([src]), iframe, object, embed, a[href^="javascript"], a[href^="data"]').count(), 0)
    assert.equal(await page.evaluate(() => window.hacked), undefined)
    await page.reload()
    await log(page).getByText('the end of it').waitFor()
  }
  await finish(page)
})
