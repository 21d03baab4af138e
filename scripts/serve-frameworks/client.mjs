// Uses rlm serve with Anthropic's client of TypeScript and Vercel's AI SDK. usage: frameworks.mjs ADDRESS
import assert from "node:assert/strict";
import channels from "node:diagnostics_channel";
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

// No connection leaves this machine.
channels.subscribe("net.client.socket", ({ socket }) =>
  socket.once("connect", () => assert.match(socket.remoteAddress, /^(127\.|::1$|::ffff:127\.)/)));

globalThis.AI_SDK_LOG_WARNINGS = false; // that it does not know the model
const v1 = process.argv[2];
const model = "rlm/default";
const hello = "Hello from the model.";
const clear = "It is clear.";
const question = "What is the weather like in San Francisco?";
const weather = ({ location }) => {
  assert.equal(location, "San Francisco");
  return "clear";
};

async function anthropic() {
  const client = new Anthropic({ baseURL: v1.replace(/\/v1$/, ""), apiKey: "unused", maxRetries: 0 });
  const hi = { model, max_tokens: 1000, messages: [{ role: "user", content: "hi" }] };
  const got = await client.messages.create(hi);
  assert.equal(got.content[0].text, hello);
  assert.equal(got.stop_reason, "end_turn");
  assert.equal(await client.messages.stream(hi).finalText(), hello);

  const tools = [{ name: "get_weather", input_schema: {
    type: "object", properties: { location: { type: "string" } }, required: ["location"],
  } }];
  const ask = {
    whole: (messages) => client.messages.create({ ...hi, messages, tools }),
    streamed: (messages) => client.messages.stream({ ...hi, messages, tools }).finalMessage(),
  };
  for (const send of Object.values(ask)) {
    const messages = [{ role: "user", content: question }];
    const said = await send(messages);
    assert.equal(said.stop_reason, "tool_use");
    const call = said.content.find((block) => block.type === "tool_use");
    messages.push({ role: "assistant", content: said.content }, { role: "user", content: [
      { type: "tool_result", tool_use_id: call.id, content: weather(call.input) },
    ] });
    assert.equal((await send(messages)).content[0].text, clear);
  }

  assert((await client.messages.countTokens({ model, messages: hi.messages })).input_tokens > 0);
  assert.equal((await client.models.list()).data[0].id, model);
  await assert.rejects(client.messages.create({ ...hi, model: "claude-unknown" }), Anthropic.NotFoundError);
}

// vercel returns a check of the AI SDK with a model.
const vercel = (model) => async () => {
  const tools = { get_weather: tool({
    description: "Tells the weather.", inputSchema: z.object({ location: z.string() }), execute: weather,
  }) };
  const failed = (event) => { throw event.error; };
  const common = { model, maxRetries: 0, stopWhen: stepCountIs(3) };

  assert.equal((await generateText({ ...common, prompt: "hi" })).text, hello);
  assert.equal(await streamText({ ...common, prompt: "hi", onError: failed }).text, hello);

  const first = await generateText({ ...common, prompt: question, tools });
  assert.equal(first.text, clear);
  assert.equal(first.steps.length, 2);
  const messages = [{ role: "user", content: question }, ...first.response.messages, { role: "user", content: "hi" }];
  assert.equal((await generateText({ ...common, messages })).text, hello);

  const streamed = streamText({ ...common, prompt: question, tools, onError: failed });
  assert.equal(await streamed.text, clear);
};

const given = { baseURL: v1, apiKey: "unused" };
const checks = {
  anthropic,
  "ai with openai": vercel(createOpenAI(given)(model)),
  "ai with openai's chat": vercel(createOpenAI(given).chat(model)),
  "ai with openai-compatible": vercel(createOpenAICompatible({ name: "rlm", ...given })(model)),
  "ai with anthropic": vercel(createAnthropic(given)(model)),
};
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`${name} works`);
  } catch (error) {
    console.error(`${name} failed:`, error);
    process.exitCode = 1;
  }
}
