// OpenAI's official client for Node against a gateway, in a folder with `npm install openai`:
//     node clients.mjs http://127.0.0.1:8000/v1
// It prints a line for each check and ends with an error at the first one that fails.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0 });
const ask = { role: "user", content: "solve(x) gets a list of integers. Double every number." };
const neutral = {
  n: 1, stream: false, stop: [], temperature: 0, top_p: 1, seed: 3, user: "u",
  max_completion_tokens: 12, metadata: { team: "a" }, service_tier: "auto", store: false,
  frequency_penalty: 0, presence_penalty: 0, logit_bias: {}, logprobs: false, tools: [],
  tool_choice: "none", parallel_tool_calls: false, response_format: { type: "text" },
  modalities: ["text"], prompt_cache_key: "k", safety_identifier: "s", verbosity: null,
  reasoning_effort: null, functions: [], function_call: "none", audio: null, prediction: null,
  web_search_options: null, top_k: -1, min_p: 0, repetition_penalty: 1, length_penalty: 1,
  min_tokens: 0, best_of: 1, use_beam_search: false, ignore_eos: false,
  skip_special_tokens: true, spaces_between_special_tokens: true,
  include_stop_str_in_output: false, add_generation_prompt: true, continue_final_message: false,
  echo: false, stop_token_ids: [], chat_template_kwargs: {}, guided_json: null, documents: null,
  request_id: "r", a_field_of_next_year: null,
};
const neutralResponse = {
  tools: [], store: false, metadata: {}, temperature: 0, top_p: 1, parallel_tool_calls: true,
  truncation: "disabled", include: [], previous_response_id: null, reasoning: null, user: "u",
  text: { format: { type: "text" } }, instructions: null, tool_choice: "auto",
  service_tier: "auto", background: false, top_logprobs: 0,
};
const model = "champion";
const create = (more = {}, messages = [ask]) => {
  const most = "max_completion_tokens" in more ? {} : { max_tokens: 24 };
  return client.chat.completions.create({ model, messages, ...most, ...more });
};
const content = async (more) => (await create(more)).choices[0].message.content;
const respond = (more) => client.responses.create({ model, max_output_tokens: 8, ...more });
const check = async (name, run) => console.log("ok", name, (await run()) ?? "");

await check(`${Object.keys(neutral).length} neutral fields, one by one`, async () => {
  const expected = await content();
  for (const [name, value] of Object.entries(neutral)) {
    const text = await content({ [name]: value });
    if (name !== "max_completion_tokens") assert.equal(text, expected, name);
  }
});
await check("all of them together, and all as null", async () => {
  await create(neutral);
  await create(Object.fromEntries(Object.keys(neutral).map((name) => [name, null])));
});
await check("an answer goes back as it came, three times", async () => {
  const messages = [ask];
  for (let turn = 0; turn < 3; turn++) {
    const { data, request_id } = await create({}, messages).withResponse();
    assert.ok(request_id);
    messages.push(data.choices[0].message, { role: "user", content: "Again.", name: "me" });
  }
});
await check("a stream with its helper and usage", async () => {
  const stream = client.chat.completions.stream({
    model, messages: [ask], max_tokens: 24, stream_options: { include_usage: true },
  });
  const final = await stream.finalChatCompletion();
  assert.equal(final.choices[0].message.content, await content());
  assert.ok(final.usage.total_tokens > 0);
});
await check("a stream that is left early", async () => {
  const stream = await create({ stream: true, max_tokens: 100 });
  for await (const chunk of stream) if (chunk.choices.length) break;
});
await check("content in parts", async () => {
  await create({}, [{ role: "user", content: [{ type: "text", text: "Double x." }] }]);
});
await check("several prompts", async () => {
  const body = { model, prompt: ["a", "b"], max_tokens: 3 };
  assert.equal((await client.completions.create(body)).choices.length, 2);
});
await check("responses: whole, with the output of an earlier one, streamed", async () => {
  const first = await respond({ input: [ask] });
  const second = await respond({ input: [ask, ...first.output, ask] });
  assert.equal(typeof second.output_text, "string");
  const kinds = [];
  for await (const event of await respond({ input: "x", stream: true })) kinds.push(event.type);
  assert.equal(kinds[0], "response.created");
});
await check(`responses: ${Object.keys(neutralResponse).length} neutral fields`, async () => {
  await respond({ input: "x", ...neutralResponse });
});
await check("models", async () => {
  const names = [];
  for await (const each of client.models.list()) names.push(each.id);
  assert.ok(names.includes(model));
  assert.equal((await client.models.retrieve(model)).id, model);
});
await check("errors are the client's own, with code, param and request id", async () => {
  const refused = async (kind, code, param, more, messages) => {
    const error = await create(more, messages).then(() => null, (found) => found);
    assert.ok(error instanceof kind, String(error));
    assert.deepEqual([error.code, error.param], [code, param]);
    assert.ok(error.requestID);
    return error.message;
  };
  await refused(OpenAI.BadRequestError, "invalid_request", "top_k", { top_k: 5 });
  await refused(OpenAI.NotFoundError, "model_not_found", "model", { model: "none" });
  const long = [{ role: "user", content: "word ".repeat(5000) }];
  const kind = OpenAI.BadRequestError;
  const message = await refused(kind, "context_length_exceeded", "messages", {}, long);
  assert.match(message, /This model's maximum context length is \d+ tokens/);
});
const installed = await readFile(new URL("node_modules/openai/package.json", import.meta.url));
console.log(`openai ${JSON.parse(installed).version}, Node ${process.version}`);
