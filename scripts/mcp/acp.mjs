// Uses rlm acp as an editor would, with the official client of the protocol. usage: acp.mjs RLM REPLIES
// REPLIES is the script that answers as the model.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [rlm, replies] = process.argv.slice(2);
const agent = spawn(rlm, ["acp", "--quiet", "--model", "scripted/" + replies], { stdio: ["pipe", "pipe", "inherit"] });
const ended = new Promise((resolve) => agent.on("close", resolve));
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

// ask prompts a session and returns all updates and the reason why the prompt stopped. It cancels the
// prompt as soon as a thought has the words of stopAt.
async function ask(ctx, session, prompt, stopAt) {
  const updates = [];
  const stopped = session.prompt(prompt);
  for (;;) {
    const message = await session.nextUpdate();
    if (message.kind === "stop") break;
    updates.push(message.update);
    if (stopAt && words(updates, "agent_thought_chunk").includes(stopAt)) {
      stopAt = undefined;
      await ctx.notify(acp.methods.agent.session.cancel, { sessionId: session.sessionId });
    }
  }
  return { updates, reason: (await stopped).stopReason };
}

// words joins the texts of the updates of one kind.
function words(updates, kind) {
  const chunks = updates.filter((update) => update.sessionUpdate === kind);
  return chunks.map((update) => update.content.text).join("");
}

await acp.client({ name: "check" }).connectWith(stream, async (ctx) => {
  const agentInfo = await ctx.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {}, clientInfo: { name: "check", version: "1" },
  });
  assert.equal(agentInfo.protocolVersion, acp.PROTOCOL_VERSION);

  await ctx.buildSession(process.cwd()).withSession(async (session) => {
    const text = { uri: "file:///needles.txt", mimeType: "text/plain", text: "a needle\n".repeat(2000) };
    const question = [{ type: "text", text: "how many needles?" }, { type: "resource", resource: text }];
    let got = await ask(ctx, session, question);
    assert.equal(got.reason, "end_turn");
    assert.equal(words(got.updates, "agent_message_chunk"), "there are 2000 needles");
    assert.match(words(got.updates, "agent_thought_chunk"), /print\(len\(context\)\)/);

    // The agent keeps the session of a canceled prompt.
    got = await ask(ctx, session, "wait for ever", "time.sleep");
    assert.equal(got.reason, "cancelled");
    assert.equal(words(got.updates, "agent_message_chunk"), "");
    got = await ask(ctx, session, "are they still there?");
    assert.equal(got.reason, "end_turn");
    assert.equal(words(got.updates, "agent_message_chunk"), "still 2000 needles");
  });
});

agent.stdin.destroy();
assert.equal(await ended, 0);
console.log("the official client of the Agent Client Protocol works with rlm acp");
