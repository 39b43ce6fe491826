// The host is killed in the middle of a turn and started again: the window says so, and goes on by itself when another one was signed in with the
// new link. Nothing is lost or doubled, and what ran is over.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { allowed, finish, log, message, open, say, signIn, test } from './app.mjs'

await test(async () => {
  allowed.add('network')
  allowed.add(401)
  const page = await signIn()
  await say(page, '1 say')
  await log(page).getByText('answer to 1 say').waitFor()
  await say(page, '2 hang')
  await log(page).getByText('half of 2 hang').waitFor()
  await message(page).fill('half a draft')
  process.kill(Number(process.env.HOST_PID), 'SIGKILL')
  const again = spawn('tendril', ['--no-open', '--port', new URL(page.url()).port], { stdio: ['ignore', 'pipe', 'ignore'], env: JSON.parse(process.env.HOST_ENV) })
  try {
    const link = await new Promise((found, failed) => {
      createInterface({ input: again.stdout }).once('line', found)
      again.once('exit', (code) => failed(new Error(`the second host ended with ${code}`)))
    })
    await page.getByRole('heading', { name: 'This window is not signed in' }).waitFor()
    const other = await open(link)
    assert(!other.url().includes('code='), other.url())
    await log(page).getByText('half of 2 hang').waitFor()
    assert.equal(await log(page).getByText('half of 2 hang').count(), 1)
    assert.equal(await log(page).getByText('answer to 1 say').count(), 1)
    assert.equal(await message(page).inputValue(), 'half a draft')
    await say(page, '3 say')
    await log(page).getByText('answer to 3 say').waitFor()
    const used = await open(link) // signed in already: it just opens
    await message(used).waitFor()
    await finish(page)
  } finally {
    again.kill('SIGTERM')
    await new Promise((gone) => (again.exitCode === null ? again.once('exit', gone) : gone()))
  }
})
