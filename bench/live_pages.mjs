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
const scrolled = await page.evaluate(async () => {
  const box = document.querySelector(".fleet");
  const frames = [];
  let rows = 0;
  await new Promise((done) => {
    const begin = performance.now();
    const step = (now) => {
      frames.push(now);
      rows = Math.max(rows, document.querySelectorAll(".fleet tbody tr").length);
      box.scrollTop = ((now - begin) / 1000) * 2 * box.clientHeight;
      if (now - begin < 5000) requestAnimationFrame(step);
      else done();
    };
    requestAnimationFrame(step);
  });
  const gaps = frames.slice(1).map((at, i) => (at - frames[i]) / 1000);
  return { fps: gaps.length / ((frames.at(-1) - frames[0]) / 1000), longest: Math.max(...gaps), rows };
});
console.log(JSON.stringify({
  renderer: cpu.renderer / seconds,
  all: cpu.all / seconds,
  heap,
  ...scrolled,
}));
await browser.close();
