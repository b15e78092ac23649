// Does with the official TypeScript client what an agent does: lists, searches,
// describes and invokes; loses an answer and repeats the call. Arguments: the endpoint,
// and the API key. Writes one line of JSON with what it saw.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [endpoint, key] = process.argv.slice(2);
const client = new Client({ name: "trial", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(endpoint), {
  requestInit: { headers: { Authorization: `Bearer ${key}` } },
}));
const call = async (name, args) => {
  const r = await client.callTool({ name, arguments: args });
  return { error: r.isError ?? false, value: r.structuredContent };
};
const invoke = (tool, args) => call("keyload_tools_invoke", { tool, arguments: args });

const tools = (await client.listTools()).tools.map((t) => t.name).sort();
const found = (await call("keyload_tools_search", { query: "commit" })).value.tools.map((t) => t.name);
const about = (await call("keyload_tools_describe", { tool: "keyload_commands_commit" })).value;
const commit = {
  commandId: about.freshCommandIds[0],
  mutations: [
    { kind: "putDocument", collection: "docs", id: "o-1", document: { total: 7 } },
    { kind: "enqueue", queue: "jobs", message: { payload: { order: "o-1" } } },
  ],
};
const first = await invoke("keyload_commands_commit", commit);
const again = await invoke("keyload_commands_commit", commit); // as if the answer had been lost
const receive = await invoke("keyload_queues_receive", { requestId: about.freshCommandIds[1], lane: { queue: "jobs" }, maxMessages: 10 });
const done = await invoke("keyload_queues_complete", {
  commandId: about.freshCommandIds[2], lane: { queue: "jobs" },
  items: receive.value.deliveries.map((d) => ({ token: d.token, action: "ack" })),
});
const refused = await invoke("keyload_documents_get", { collection: "none", id: "x" });
const quickstart = (await client.readResource({ uri: "keyload://quickstart" })).contents[0].text;
const prompt = (await client.getPrompt({ name: "work_a_queue", arguments: { queue: "jobs" } })).messages[0].content.text;
await client.close();
console.log(JSON.stringify({
  tools, found, schema: about.inputSchema.type, first, again,
  deliveries: receive.value.deliveries.map((d) => d.payload), done: done.error, refused,
  quickstart: quickstart.length, prompt: prompt.length,
}));
