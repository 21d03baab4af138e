// Holds sessions of rlm serve over a WebSocket, with the client ws. usage: socket.mjs ADDRESS
import assert from "node:assert/strict";
import WebSocket from "ws";

const address = process.argv[2].replace(/^http/, "ws") + "/sessions/connect";

// Client asks, and answers the calls of snippets.
class Client {
  waiting = new Map();
  output = "";
  last = 0;

  async open() {
    this.socket = new WebSocket(address);
    this.socket.on("message", (data) => this.take(JSON.parse(data.toString())));
    await new Promise((done, fail) => this.socket.once("open", done).once("error", fail));
    return this.ask("initialize", { protocol: 1, client: { name: "ws" } });
  }

  take(message) {
    if (message.method === "session/output") this.output += message.params.text;
    else if (message.method === "host/call") {
      const value = message.params.args.reduce((a, b) => a + b, 0);
      this.socket.send(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: { value } }, null, 2));
    } else {
      const { done, fail } = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error) fail(message.error);
      else done(message.result);
    }
  }

  ask(method, params) {
    const id = ++this.last;
    this.socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return new Promise((done, fail) => this.waiting.set(id, { done, fail }));
  }

  async close() {
    this.socket.close();
    await new Promise((done) => this.socket.once("close", done));
  }
}

const first = new Client();
assert.equal((await first.open()).protocol, 1);
const { session } = await first.ask("session/open", {
  name: "kept", functions: [{ name: "add" }], contexts: [{ name: "log", text: "a needle" }],
});
let got = await first.ask("session/run", { session, source: "n = add(40, 2); print(log)\nn", stream: true });
assert.equal(got.echo, "42", got);
assert.equal(first.output, "a needle\n42\n");
const other = await first.ask("session/open", {});
assert.equal((await first.ask("session/run", { session: other.session, source: "1 + 1" })).echo, "2");
await assert.rejects(first.ask("session/open", { contexts: [{ path: "/etc/passwd" }] }));
await first.close();

const second = new Client();
await second.open();
let again;
while (!again) {
  // The server may not have noticed the end of the first connection.
  again = await second.ask("session/open", { name: "kept" }).catch((error) => {
    assert.equal(error.data.kind, "in_use", JSON.stringify(error));
  });
}
got = await second.ask("session/run", { session: again.session, source: "n + 1" });
assert.equal(got.echo, "43", got);
await second.close();
console.log("sessions work over a WebSocket with ws");
