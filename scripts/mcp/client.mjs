// Uses rlm mcp as a host would, with the official SDK of TypeScript. usage: client.mjs RLM SERVERS ADDRESS
// ADDRESS is that of rlm serve.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [rlm, servers, served] = process.argv.slice(2);

// call calls a tool that must succeed. The SDK checks the result by the tool's schema.
async function call(client, name, args, options) {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  assert(!result.isError, JSON.stringify(result));
  return result.structuredContent;
}

async function use(client) {
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  for (const name of ["rlm_open", "rlm_exec", "rlm_files", "rlm_close"]) assert(names.includes(name));

  const lines = [];
  const code = "import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.2)\n6 * 7";
  let got = await call(client, "rlm_exec", { source: code }, { onprogress: (p) => lines.push(p.message) });
  assert.equal(got.stdout, "0\n1\n2\n42\n");
  assert(lines.includes("1"), lines);

  const { session } = await call(client, "rlm_open", { contexts: [{ text: "one\ntwo" }, { value: "[1, 2]" }] });
  got = await call(client, "rlm_exec", { session, source: "n = len(context.splitlines()); FINAL([n, context_1])" });
  assert.deepEqual(got.value, [2, [1, 2]]);
  const record = await client.readResource({ uri: "rlm://runs/" + got.run });
  assert(record.contents[0].text.includes("splitlines"));

  const failed = await client.callTool({ name: "rlm_exec", arguments: { session, source: "n / 0" } });
  assert(failed.isError);
  assert.equal(failed.structuredContent.exception.type, "ZeroDivisionError");

  // A call that is taken back frees its session, whose variables stay.
  const stop = new AbortController();
  const endless = call(client, "rlm_exec", { session, source: "while True: pass" }, { signal: stop.signal });
  setTimeout(() => stop.abort(), 500);
  await assert.rejects(endless);
  assert.equal((await call(client, "rlm_exec", { session, source: "n" })).stdout, "2\n");
  await call(client, "rlm_close", { session });
}

async function connect(transport, capabilities = {}) {
  const client = new Client({ name: "check", version: "1" }, { capabilities });
  if (capabilities.elicitation) {
    client.setRequestHandler(ElicitRequestSchema, (request) => ({
      action: "accept", content: { allow: request.params.message.includes("yes please") },
    }));
  }
  await client.connect(transport);
  return client;
}

let client = await connect(new StdioClientTransport({ command: rlm, args: ["mcp", "--quiet"] }));
await use(client);
await client.close();

const args = ["mcp", "--quiet", "--mcp", servers, "--approve", "ask everything__echo"];
client = await connect(new StdioClientTransport({ command: rlm, args }), { elicitation: {} });
const found = await call(client, "rlm_search_tools", { query: "echo back", limit: 1 });
assert.equal(found.tools[0].name, "everything.echo");
const code = `print(everything.echo(message='yes please'))
try:
    everything.echo(message='no')
except Exception as e:
    print(e)`;
const got = await call(client, "rlm_exec", { source: code });
assert.match(got.stdout, /yes please[\s\S]*has denied it/);
await client.close();

const server = spawn(rlm, ["mcp", "--http", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"] });
try {
  const [line] = await once(server.stderr, "data");
  const address = String(line).trim().split(" ").pop();
  client = await connect(new StreamableHTTPClientTransport(new URL(address)));
  await use(client);
  await client.close();
} finally {
  server.kill();
}

client = await connect(new StreamableHTTPClientTransport(new URL(served + "/mcp")));
await use(client);
const { session } = await call(client, "rlm_open", { contexts: [{ text: "a needle\n".repeat(2000) }] });
const asked = await call(client, "rlm_ask", { session, question: "how many needles?" });
assert.equal(asked.answer, "there are 2000 needles");
await client.close();
console.log("the TypeScript SDK works over stdio and HTTP, and with rlm serve");
