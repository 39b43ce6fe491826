// Drives `tendril mcp` with the official SDK: list, call, progress, cancel, list_changed.
//
//   node client.mjs stdio TENDRIL WORKSPACE
//   node client.mjs http URL TOKEN
//
// It ends with 0 when everything was as it should be, and with an assertion on stderr otherwise.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [mode, where, secret] = process.argv.slice(2);

function transport() {
  if (mode === "stdio") {
    return new StdioClientTransport({
      command: where,
      args: ["mcp", "--workspace", secret, "--expose-capabilities"],
      env: { ...process.env },
      stderr: "inherit",
    });
  }
  return new StreamableHTTPClientTransport(new URL(where), { requestInit: { headers: { Authorization: `Bearer ${secret}` } } });
}

const problems = [];

async function connect() {
  const client = new Client({ name: "test-client", version: "1.0.0" });
  let changes = 0;
  let ended = false;
  let waiting = [];
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
    changes++;
    waiting.forEach((resolve) => resolve());
    waiting = [];
  });
  client.onerror = (error) => {
    if (!ended) problems.push(error); // a reply that nobody waits for, say
  };
  await client.connect(transport());
  return {
    client,
    // toolNamed waits until the list has the tool, asking again only after a change was announced.
    async toolNamed(name) {
      for (;;) {
        const seen = changes;
        const { tools } = await client.listTools();
        const tool = tools.find((t) => t.name === name);
        if (tool) return tool;
        if (changes === seen) await new Promise((resolve) => waiting.push(resolve));
      }
    },
    async close() {
      ended = true;
      await client.close();
    },
  };
}

const text = (result) => result.content.map((c) => c.text).join("\n");

function registration(name, code, parameters) {
  const definition = {
    name,
    capability: `Does what the test ${name} says.`,
    triggers: [`the test asks for ${name}`, `somebody needs ${name}`],
    suppression: [],
  };
  if (parameters) definition.parameters = parameters;
  return { name: "registerCapability", arguments: { definition, code } };
}

async function call(client, params, options) {
  return await client.callTool(params, undefined, { timeout: 120_000, ...options });
}

async function main() {
  const first = await connect();
  const { client } = first;
  assert.equal(client.getServerVersion().name, "tendril");
  assert.match(client.getInstructions(), /listCapabilities/);
  const tools = (await client.listTools()).tools.map((t) => t.name).sort();
  assert.deepEqual(tools, ["execute", "listCapabilities", "registerCapability"]);

  const empty = await call(client, { name: "listCapabilities", arguments: {} });
  assert.deepEqual(empty.structuredContent.capabilities, []);

  // A registration tells each step of the gate, and makes a tool.
  const steps = [];
  const parameters = { type: "object", properties: { n: { type: "integer", description: "a number" } }, required: ["n"] };
  const registered = await call(
    client,
    registration("twice", "export default async function () { return args.n * 2; }\n", parameters),
    { onprogress: (p) => steps.push(p) },
  );
  assert.ok(!registered.isError, text(registered));
  assert.equal(registered.structuredContent.registered, "twice");
  assert.ok(steps.some((p) => p.message.startsWith("gate: types passed")), JSON.stringify(steps));
  assert.deepEqual(steps.map((p) => p.progress), steps.map((_, i) => i + 1));

  const tool = await first.toolNamed("twice");
  assert.deepEqual(tool.inputSchema, parameters);
  assert.match(tool.description, /the test asks for twice/);
  assert.equal(text(await call(client, { name: "twice", arguments: { n: 21 } })), "42");
  assert.equal(text(await call(client, { name: "execute", arguments: { name: "twice", args: { n: 4 } } })), "8");

  // Failures are results.
  for (const bad of [
    { name: "twice", arguments: {} },
    { name: "twice", arguments: { n: "x" } },
    { name: "execute", arguments: { name: "nothing" } },
    { name: "execute", arguments: { NAME: "twice" } },
    registration("broken", "const n: number = 'x';\n"),
  ]) {
    const result = await call(client, bad);
    assert.equal(result.isError, true, JSON.stringify(bad) + text(result));
  }
  await assert.rejects(call(client, { name: "no_such_tool", arguments: {} }), { code: -32602 });

  // Lines arrive while the capability runs; a cancel ends it.
  const code = `console.log("started"); await new Promise((r) => setTimeout(r, 60_000)); console.log("late");\n`;
  assert.ok(!(await call(client, registration("sleeper", code))).isError);
  const abort = new AbortController();
  const lines = [];
  const sleeping = call(client, { name: "execute", arguments: { name: "sleeper" } }, {
    signal: abort.signal,
    onprogress: (p) => {
      lines.push(p.message);
      if (p.message.includes("started")) abort.abort("enough");
    },
  });
  await assert.rejects(sleeping);
  assert.ok(lines.some((l) => l.includes("started")));
  await client.ping();

  // What somebody else registers becomes a tool here.
  const second = await connect();
  assert.ok(!(await call(second.client, registration("theirs", "console.log(1);\n"))).isError);
  await first.toolNamed("theirs");
  await second.close();

  assert.equal(text(await call(client, { name: "theirs", arguments: {} })), "1");
  await first.close();
  assert.deepEqual(problems, []);
}

await main();
