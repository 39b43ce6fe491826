// Drives `tendril acp` with the official SDK, which checks every message
// against the protocol's schema: node client.mjs FOLDER. The model is scripted by
// the test that runs this (internal/cli/acp_sdk_test.go).
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [folder] = process.argv.slice(2);

// connect starts an agent, and runs work with it. It returns the agent's exit code.
async function connect(work) {
  const agent = spawn("tendril", ["acp"], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise((resolve) => agent.on("exit", resolve));
  const updates = [];
  const questions = [];
  let firstUpdate = () => {};
  const app = acp
    .client({ name: "test" })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      updates.push({ sid: params.sessionId, ...params.update });
      firstUpdate();
    })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      questions.push(params);
      return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId } };
    });
  await app.connectWith(acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (ctx) => {
    const m = acp.methods.agent;
    const init = await ctx.request(m.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {}, clientInfo: { name: "sdk test", version: "1" },
    });
    assert.equal(init.protocolVersion, acp.PROTOCOL_VERSION);
    assert.equal(init.agentCapabilities.loadSession, true);
    const prompt = (sessionId, text) => ctx.request(m.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    const update = () => new Promise((resolve) => { firstUpdate = resolve; });
    await work({ ctx, m, prompt, update, updates, questions });
  });
  agent.stdin.end();
  assert.equal(await exited, 0, "the agent's exit code");
}

const text = (updates, kind) => updates.filter((u) => u.sessionUpdate === kind).map((u) => u.content.text).join("");

let sid;
await connect(async ({ ctx, m, prompt, update, updates, questions }) => {
  const created = await ctx.request(m.session.new, { cwd: folder, mcpServers: [] });
  sid = created.sessionId;
  assert.deepEqual(created.modes.availableModes.map((mode) => mode.id), ["policy", "ask"]);
  await ctx.request(m.session.setMode, { sessionId: sid, modeId: "ask" });

  assert.equal((await prompt(sid, "hello")).stopReason, "end_turn");
  assert.equal(text(updates, "agent_message_chunk"), "hello yourself");
  assert.ok(updates.length > 1, "the answer came in pieces");

  assert.equal((await prompt(sid, "build")).stopReason, "end_turn");
  assert.deepEqual(questions.map((q) => [q.sessionId, q.toolCall.toolCallId]), [[sid, "build-1"]]);
  const calls = updates.filter((u) => u.toolCallId === "build-1");
  assert.equal(calls[0].sessionUpdate, "tool_call");
  assert.equal(calls[0].rawInput.definition.name, "fetcher");
  assert.equal(calls.at(-1).status, "completed");
  assert.equal(calls.at(-1).content[0].type, "diff");

  const running = prompt(sid, "forever");
  await update();
  await assert.rejects(prompt(sid, "meanwhile"), /busy/);
  await ctx.notify(m.session.cancel, { sessionId: sid });
  assert.equal((await running).stopReason, "cancelled");

  await assert.rejects(prompt("none", "hello"), (e) => e.code === -32002);
  await assert.rejects(prompt(sid, "fail"), (e) => e.data.kind === "bad_request" || e.data.kind === "credentials");
});

await connect(async ({ ctx, m, prompt, updates }) => {
  const { sessions } = await ctx.request(m.session.list, { cwd: folder });
  assert.deepEqual(sessions.map((s) => [s.sessionId, s.cwd, s.title]), [[sid, folder, "hello"]]);
  await ctx.request(m.session.load, { sessionId: sid, cwd: folder, mcpServers: [] });
  assert.match(text(updates, "user_message_chunk"), /^hellobuildforeverfail$/);
  assert.match(text(updates, "agent_message_chunk"), /^hello yourselfbuiltendless/);
  const finished = updates.filter((u) => u.sessionUpdate === "tool_call_update");
  assert.deepEqual(finished.map((u) => [u.toolCallId, u.status]), [["build-1", "completed"]]);
  assert.equal((await prompt(sid, "hello")).stopReason, "end_turn");
  await ctx.request(m.session.close, { sessionId: sid });
});
