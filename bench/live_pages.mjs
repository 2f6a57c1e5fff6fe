// node live_pages.mjs NODE FLEET SECONDS: what the pages cost in Chromium, as JSON.
import { pathToFileURL } from "node:url";

const { chromium } = await import(pathToFileURL(process.env.PLAYWRIGHT).href);
const [node, fleet, seconds] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--no-first-run"] });
const session = await browser.newBrowserCDPSession();

async function cpuTimes() {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  return processInfo;
}

// CPU seconds of all processes since `before`, and of the renderer that took most: Chromium keeps a spare one.
function cpuSince(before, after) {
  const taken = after.map(({ type, id, cpuTime }) => ({
    type,
    seconds: cpuTime - (before.find((one) => one.id === id)?.cpuTime ?? 0),
  }));
  return {
    all: taken.reduce((sum, { seconds }) => sum + seconds, 0),
    renderer: Math.max(...taken.filter(({ type }) => type === "renderer").map(({ seconds }) => seconds)),
  };
}

const pause = (time) => new Promise((go) => setTimeout(go, 1000 * time));
const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
await page.goto(`${node}#/node?seconds=60`);
await page.getByText("Live", { exact: true }).waitFor();
await pause(5);
const before = await cpuTimes();
await pause(seconds);
const cpu = cpuSince(before, await cpuTimes());
const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);

await page.goto(fleet);
await page.waitForFunction(() => document.querySelectorAll(".fleet tbody tr").length > 5, null, { timeout: 60_000 });
await page.getByText(/1000/).first().waitFor({ timeout: 60_000 });
// Two screens a second, as a reader who looks for something.
const scroll = (view) => view.evaluate(async () => {
  const box = document.querySelector(".fleet");
  const frames = [];
  let rows = 0;
  await new Promise((done) => {
    const begin = performance.now();
    const step = (now) => {
      frames.push(now);
      rows = Math.max(rows, document.querySelectorAll(".fleet tbody tr").length);
      box.scrollTop = ((now - begin) / 1000) * 2 * box.clientHeight;
      if (now - begin < 3000) requestAnimationFrame(step);
      else done();
    };
    requestAnimationFrame(step);
  });
  const gaps = frames.slice(1).map((at, i) => (at - frames[i]) / 1000);
  return { fps: gaps.length / ((frames.at(-1) - frames[0]) / 1000), frames: gaps.length, longest: Math.max(...gaps), rows };
});

// The main thread's time for a frame, which no other program of the machine makes shorter.
async function scrollWithCost(view) {
  const devtools = await view.context().newCDPSession(view);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async () => (await devtools.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value;
  const before = await busy();
  const scrolled = await scroll(view);
  return { ...scrolled, cost: ((await busy()) - before) / scrolled.frames };
}

// The same scroll of a box with nothing in it says what this machine can show at best. In turns, since
// machines are busier now than then.
const empty = await browser.newPage({ viewport: { width: 1300, height: 900 } });
await empty.setContent('<div class="fleet" style="height: 650px; overflow: auto"><div style="height: 46000px"></div></div>');
const [ideal, scrolled] = [[], []];
for (let round = 0; round < 3; ++round) {
  await empty.bringToFront();
  ideal.push(await scrollWithCost(empty));
  await page.bringToFront();
  scrolled.push(await scrollWithCost(page));
}
const median = (rounds, of) => rounds.map(of).sort((a, b) => a - b)[1];
console.log(JSON.stringify({
  renderer: cpu.renderer / seconds,
  all: cpu.all / seconds,
  heap,
  fps: median(scrolled, ({ fps }) => fps),
  longest: median(scrolled, ({ longest }) => longest),
  cost: median(scrolled, ({ cost }) => cost),
  idealFps: median(ideal, ({ fps }) => fps),
  rows: Math.max(...scrolled.map(({ rows }) => rows)),
}));
await browser.close();
