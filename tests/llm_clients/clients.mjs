// Official clients of language models, each streamed and not, against one server:
//   node clients.mjs CLIENT URL MODEL
// It prints a line of JSON for each answer: how it was asked for, the text, and where the client let its user see the
// energy. Packages are found in node_modules beside this file.
const [client, url, model] = process.argv.slice(2);
const prompt = 'Once upon a time there was a lighthouse.';
const messages = [{role: 'user', content: prompt}];
const limit = 16;

function report(how, text, energy, more = {}) {
  console.log(JSON.stringify({client, how, text, energy, ...more}));
}

// The official client of OpenAI. Its stream helper refuses events without choices.
async function openai() {
  const {default: OpenAI} = await import('openai');
  const server = new OpenAI({baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0});
  const request = {model, messages, max_tokens: limit};
  const whole = await server.chat.completions.create(request).withResponse();
  report('whole', whole.data.choices[0].message.content, whole.data.usage.energy,
    {header: whole.response.headers.get('x-zeus-energy-joules'), request: whole.response.headers.get('x-zeus-request')});

  const stream = await server.chat.completions.create(
    {...request, stream: true, stream_options: {include_usage: true}}).withResponse();
  let text = '', energy;
  for await (const chunk of stream.data) {
    text += chunk.choices[0]?.delta?.content ?? '';
    energy = chunk.usage?.energy ?? energy;
  }
  report('stream', text, energy, {request: stream.response.headers.get('x-zeus-request')});

  // Without usage the energy is in a comment, which this client skips; the header leads to the record.
  const plain = await server.chat.completions.create({...request, stream: true}).withResponse();
  text = '';
  for await (const chunk of plain.data) {
    if (chunk.usage) throw new Error('a chunk has usage that was not asked for');
    text += chunk.choices[0].delta.content ?? '';
  }
  report('stream without usage', text, null, {request: plain.response.headers.get('x-zeus-request')});

  const helper = server.chat.completions.stream({...request, stream_options: {include_usage: true}});
  const final = await helper.finalChatCompletion();
  report('stream helper', final.choices[0].message.content, (await helper.totalUsage()).energy ?? final.usage.energy);

  const old = await server.completions.create({model, prompt, max_tokens: limit});
  report('text', old.choices[0].text, old.usage.energy);
}

// The AI SDK with its provider for compatible servers.
async function ai() {
  const {generateText, streamText} = await import('ai');
  const {createOpenAICompatible} = await import('@ai-sdk/openai-compatible');
  const provider = createOpenAICompatible({name: 'zeus', baseURL: `${url}/v1`, includeUsage: true});
  const request = {model: provider(model), prompt, maxOutputTokens: limit, maxRetries: 0};
  const whole = await generateText(request);
  report('whole', whole.text, whole.response.body.usage.energy,
    {header: whole.response.headers['x-zeus-energy-joules'], request: whole.response.headers['x-zeus-request']});

  const stream = streamText({...request, includeRawChunks: true, onError() {}});
  let text = '', energy;
  for await (const part of stream.fullStream) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'text-delta') text += part.text;
    if (part.type === 'raw') energy = part.rawValue.usage?.energy ?? energy;
  }
  report('stream', text, energy, {request: (await stream.response).headers['x-zeus-request']});
}

// LangChain shows what the server said beside its own message.
async function langchain() {
  const {ChatOpenAI} = await import('@langchain/openai');
  const chat = new ChatOpenAI({model, apiKey: 'none', maxTokens: limit, maxRetries: 0,
    configuration: {baseURL: `${url}/v1`}, __includeRawResponse: true});
  const whole = await chat.invoke(prompt);
  report('whole', whole.content, whole.additional_kwargs.__raw_response.usage.energy);
  let text = '', energy;
  for await (const chunk of await chat.stream(prompt)) {
    text += chunk.content;
    energy = chunk.additional_kwargs.__raw_response?.usage?.energy ?? chunk.response_metadata.usage?.energy ?? energy;
  }
  report('stream', text, energy);
}

async function ollama() {
  const {Ollama} = await import('ollama');
  const server = new Ollama({host: url});
  const options = {num_predict: limit};
  const whole = await server.chat({model, messages, options});
  report('whole', whole.message.content, whole.energy);
  let text = '', energy;
  for await (const part of await server.chat({model, messages, options, stream: true})) {
    text += part.message.content;
    energy = part.energy ?? energy;
  }
  report('stream', text, energy);
  const generated = await server.generate({model, prompt, options});
  report('text', generated.response, generated.energy);
  text = '';
  for await (const part of await server.generate({model, prompt, options, stream: true})) {
    text += part.response;
    energy = part.energy ?? energy;
  }
  report('text stream', text, energy);
  if (!(await server.list()).models.some((entry) => entry.name === model)) throw new Error(`${model} is not listed`);
}

try {
  await {openai, ai, langchain, ollama}[client]();
} catch (error) {
  console.error(error);
  process.exit(1);
}
