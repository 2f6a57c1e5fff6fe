// node live_day.mjs NODE HOURS: what the page of a live node keeps after hours of readings, as JSON. The
// page, the facts and the past come from NODE; the stream has ten readings of eight GPUs for every
// second of those hours, as fast as the page reads them.
import { createServer, request } from "node:http";
import { pathToFileURL } from "node:url";

const { chromium } = await import(pathToFileURL(process.env.PLAYWRIGHT).href);
const [node, hours] = [process.argv[2], Number(process.argv[3])];
const begin = await (await fetch(`${node}v1/readings`)).json();
const told = []; // One entry of measurements for each part of the day.
let reached = () => {};

// The readings of a part of the day, no more at once than the connection takes. In the last one every
// GPU has the temperature `mark`, by which one sees that the page has read all.
async function send(answer, from, to, mark) {
  for (let step = Math.round(from * 10); step < to * 10; ++step) {
    const devices = begin.devices.map((one, gpu) => ({ ...one, power_watts: 150 + 30 * gpu + 20 * Math.sin(step / 300 + gpu) }));
    if (step + 1 >= to * 10) for (const device of devices) device.temperature_celsius = mark;
    const at = begin.at_seconds + step / 10;
    const time = new Date(Date.parse(begin.time) + 100 * step).toISOString();
    const event = `event: reading\ndata: ${JSON.stringify({ at_seconds: at, time, devices })}\n\n`;
    if (!answer.write(event)) await new Promise((go) => answer.once("drain", go));
  }
}

let streamed;
const server = createServer((asked, answer) => {
  if (asked.url.startsWith("/v1/stream")) {
    answer.writeHead(200, { "Content-Type": "text/event-stream" });
    answer.flushHeaders();
    if (!asked.url.includes("period=0.1")) return; // The page's first wish, before it knows its view.
    streamed = answer;
    reached();
    return;
  }
  // A connection of its own: one that is kept may end in the moment in which it is used again.
  request(new URL(asked.url.slice(1), node), { agent: false }, (found) => {
    answer.writeHead(found.statusCode, found.headers);
    found.pipe(answer);
  }).on("error", () => answer.destroy()).end();
});
await new Promise((go) => server.listen(0, "127.0.0.1", go));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--no-first-run"] });
const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
const session = await page.context().newCDPSession(page);
await session.send("Performance.enable");
await session.send("HeapProfiler.enable");
const open = new Promise((go) => (reached = go));
await page.goto(`http://127.0.0.1:${server.address().port}/#/node?seconds=60`);
await open;
let sent = 0;
for (const part of [1 / 24, 1 / 4, 1 / 2, 1]) {
  const until = part * hours * 3600;
  const mark = 20 + told.length;
  await send(streamed, sent, until, mark);
  sent = until;
  await page.getByText(`${mark} °C`, { exact: true }).first().waitFor({ timeout: 600_000 });
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const of = (name) => metrics.find((one) => one.name === name).value;
  told.push({ hours: until / 3600, heap: of("JSHeapUsedSize"), nodes: of("Nodes"), listeners: of("JSEventListeners") });
}
console.log(JSON.stringify(told));
await browser.close();
process.exit(0);
