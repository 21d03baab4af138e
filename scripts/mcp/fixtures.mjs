// The tools, resources and prompts that the conformance suite calls by their names, as an MCP
// server on stdin and stdout. The suite reaches it through rlm mcp, which passes all of it on.
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { completable } from "@modelcontextprotocol/sdk/server/completable.js";
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const text = (text) => ({ type: "text", text });
const image = { type: "image", data: png, mimeType: "image/png" };
const resource = (uri, mimeType, text) => ({ type: "resource", resource: { uri, mimeType, text } });
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

const server = new McpServer(
  { name: "fixtures", version: "1" },
  { capabilities: { logging: {}, resources: { subscribe: true } } },
);

const tool = (name, ...content) => server.registerTool(name, { description: name }, () => ({ content }));
tool("test_simple_text", text("This is a simple text response for testing."));
tool("test_image_content", image);
tool("test_audio_content", { type: "audio", data: wav, mimeType: "audio/wav" });
tool(
  "test_embedded_resource",
  resource("test://embedded-resource", "text/plain", "This is an embedded resource content."),
);
tool(
  "test_multiple_content_types",
  text("Multiple content types test:"),
  image,
  resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
);
server.registerTool("test_error_handling", { description: "fails" }, () => {
  throw new Error("This tool intentionally returns an error for testing");
});
server.registerTool("test_tool_with_logging", { description: "logs" }, async () => {
  for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
    await server.sendLoggingMessage({ level: "info", data });
    await pause();
  }
  return { content: [text("done")] };
});
server.registerTool("test_tool_with_progress", { description: "tells its progress" }, async (extra) => {
  const progressToken = extra._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progressToken !== undefined) {
      const params = { progressToken, progress, total: 100 };
      await extra.sendNotification({ method: "notifications/progress", params });
    }
    await pause();
  }
  return { content: [text("done")] };
});
server.registerTool(
  "test_sampling",
  { description: "asks the model of the client", inputSchema: { prompt: z.string() } },
  async ({ prompt }) => {
    const messages = [{ role: "user", content: text(prompt) }];
    const reply = await server.server.createMessage({ messages, maxTokens: 100 });
    return { content: [text("LLM response: " + reply.content.text)] };
  },
);
server.registerTool(
  "test_elicitation",
  { description: "asks the user of the client", inputSchema: { message: z.string() } },
  async ({ message }) => {
    const properties = { username: { type: "string" }, email: { type: "string" } };
    const requestedSchema = { type: "object", properties, required: ["username", "email"] };
    const reply = await server.server.elicitInput({ message, requestedSchema });
    return { content: [text("User response: " + JSON.stringify(reply))] };
  },
);

const contents = (uri, more) => ({ contents: [{ uri, ...more }] });
const plain = (text) => ({ mimeType: "text/plain", text });
server.registerResource("text", "test://static-text", { description: "a text" }, (uri) =>
  contents(uri.href, plain("This is the content of the static text resource.")),
);
server.registerResource("binary", "test://static-binary", { description: "a picture" }, (uri) =>
  contents(uri.href, { mimeType: "image/png", blob: png }),
);
server.registerResource("watched", "test://watched-resource", { description: "a text" }, (uri) =>
  contents(uri.href, plain("watched")),
);
server.registerResource(
  "template",
  new ResourceTemplate("test://template/{id}/data", { list: undefined }),
  { description: "a text by its ID" },
  (uri, { id }) =>
    contents(uri.href, { mimeType: "application/json", text: JSON.stringify({ id, data: `Data for ID: ${id}` }) }),
);
server.server.setRequestHandler(SubscribeRequestSchema, () => ({}));
server.server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));

const prompt = (name, argsSchema, answer) =>
  server.registerPrompt(name, { description: name, argsSchema }, (given) => ({
    messages: answer(given).map((content) => ({ role: "user", content })),
  }));
prompt("test_simple_prompt", undefined, () => [text("This is a simple prompt for testing.")]);
prompt(
  "test_prompt_with_arguments",
  { arg1: completable(z.string(), () => ["paris", "park", "party"]), arg2: z.string() },
  ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
);
prompt("test_prompt_with_embedded_resource", { resourceUri: z.string() }, ({ resourceUri }) => [
  resource(resourceUri, "text/plain", "Embedded resource content for testing."),
  text("Please process the embedded resource above."),
]);
prompt("test_prompt_with_image", undefined, () => [image, text("Please analyze the image above.")]);

await server.connect(new StdioServerTransport());
