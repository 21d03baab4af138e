// Uses rlm serve with the official client of TypeScript. usage: client.mjs ADDRESS
import assert from "node:assert/strict";
import OpenAI, { toFile } from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "unused", maxRetries: 0 });
const model = "rlm/default";
const hay = "hay needle ".repeat(20_000);

const got = await client.chat.completions.create({ model, messages: [{ role: "user", content: "hi" }] });
assert.equal(got.choices[0].message.content, "Hello from the model.");

let text = "";
const stream = await client.chat.completions.create({
  model, stream: true, messages: [{ role: "user", content: "hi" }],
});
for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
assert.equal(text, "Hello from the model.");

const file = await client.files.create({ file: await toFile(Buffer.from(hay), "hay.txt"), purpose: "user_data" });
const input = [{ role: "user", content: [
  { type: "input_file", file_id: file.id }, { type: "input_text", text: "How many needles?" },
] }];
const kinds = [];
const events = client.responses.stream({ model, input });
for await (const event of events) kinds.push(event.type);
assert.equal((await events.finalResponse()).output_text, "there are 20000 needles");
assert(kinds.includes("response.code_interpreter_call_code.done"), kinds);

const background = await client.responses.create({ model, input, background: true });
let now = background;
while (now.status === "queued" || now.status === "in_progress") {
  await new Promise((resolve) => setTimeout(resolve, 100));
  now = await client.responses.retrieve(background.id);
}
assert.equal(now.output_text, "there are 20000 needles");
await assert.rejects(client.responses.retrieve("resp_none"), OpenAI.NotFoundError);
console.log("chat, files and responses work with the client of TypeScript");
