// node budget_page_browser.mjs FOLDER: the page of a power budget in Chromium, with a real `zeus serve
// --budget FOLDER/budget.toml` behind it and two nodes that report as zeusd does.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { check, faintTexts, launch, openPage, passedChecks } from "./browser_testing.mjs";

const [folder] = process.argv.slice(2);
const zeus = process.env.ZEUS_BINARY;
const shots = process.env.ZEUS_SCREENSHOTS; // A folder for a picture.

const server = spawn(zeus, ["serve", "--listen", "127.0.0.1:0", "--no-access-log", "--database",
  `sqlite://${folder}/zeus.db`, "--budget", `${folder}/budget.toml`], { stdio: ["ignore", "pipe", "inherit"] });
process.on("exit", () => server.kill("SIGKILL")); // A check that fails ends this program.
const ended = new Promise((resolve) => server.on("exit", resolve));
const url = await Promise.race([
  createInterface({ input: server.stdout })[Symbol.asyncIterator]().next().then(({ value }) => value.replace("listening on ", "")),
  ended.then((code) => { throw new Error(`zeus serve ended with ${code}`); }),
]);

async function ask(method, path, body) {
  const answer = await fetch(url + path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const text = await answer.text();
  return { status: answer.status, json: text ? JSON.parse(text) : undefined };
}

// Asks until the answer is as wanted, for two minutes at most.
async function until(wanted, what) {
  const end = Date.now() + 120_000;
  for (;;) {
    const { json } = await ask("GET", "/v1/budget");
    if (wanted(json)) return json;
    assert.ok(Date.now() < end, `${what}: ${JSON.stringify(json)}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

// A node with two GPUs and a job that obeys its grants at once.
class Node {
  constructor(name, job, curve) {
    this.name = name;
    this.devices = [0, 1].map((i) => ({
      id: `GPU-${name}-${i}`, model: "V100", lowest_watts: 100, highest_watts: 300, cap_watts: 300,
      fallback_watts: 100, power_watts: 90, utilization: 1,
    }));
    this.jobs = [{ id: job, name: job, devices: this.devices.map(({ id }) => id), curve }];
    this.sequence = 0;
    this.applied = 0;
    this.running = this.run();
  }

  async run() {
    while (!this.stopped) {
      const { status, json } = await ask("POST", `/v1/nodes/${this.name}/report`, {
        session: "one", sequence: ++this.sequence, applied: this.applied, guarded: true,
        devices: this.devices, jobs: this.jobs,
      });
      if (status === 200) {
        for (const cap of json.caps) {
          const device = this.devices.find(({ id }) => id === cap.device);
          device.cap_watts = cap.cap_watts;
          device.fallback_watts = cap.fallback_watts;
          device.power_watts = 0.9 * cap.cap_watts;
        }
        this.applied = json.number;
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  async stop() {
    this.stopped = true;
    await this.running;
  }
}

const steep = [[100, 2], [200, 1.2], [300, 1]].map(([limit, slowdown]) => ({ limit_watts: limit, draw_watts: 0.9 * limit, slowdown, sigma: 0.001 }));
const gentle = [[100, 1.2], [200, 1.05], [300, 1]].map(([limit, slowdown]) => ({ limit_watts: limit, draw_watts: 0.9 * limit, slowdown, sigma: 0.001 }));
const first = new Node("n1", "train-steep", steep);
const second = new Node("n2", "train-gentle", gentle);
// Both nodes begin with more than their racks may have; then the watts go where they bring most.
await until(({ domains, nodes }) => nodes.length === 2 && domains[0].committed_watts > 1050 &&
  domains.every((domain) => domain.committed_watts <= domain.limit_watts), "the budget is not handed out");

const browser = await launch();
const page = await openPage(browser, `${url}/#/budget`);
const card = (name) => page.locator(`section[aria-label="${name}"]`);
const row = (name, domain) => card(name).locator("tbody tr", { has: page.locator("th", { hasText: domain }) });

await check("the navigation has the view, because the server shares out a budget", async () => {
  await page.locator("nav a", { hasText: "Budget" }).waitFor();
  assert.equal(await page.locator("h1").innerText(), "Power budget");
});

await check("domains are a tree: racks stand below the site, and further to the right", async () => {
  await row("Domains", "rack-1").waitFor();
  const rows = await card("Domains").locator("tbody tr th").evaluateAll((cells) => cells.map((cell) => [
    cell.firstChild.textContent, parseFloat(getComputedStyle(cell).paddingLeft)]));
  assert.equal(rows.length, 3);
  assert.deepEqual(rows.slice(1).map(([name]) => name), ["rack-1", "rack-2"]);
  assert.ok(rows[1][1] > rows[0][1] && rows[2][1] === rows[1][1], JSON.stringify(rows));
});

await check("the numbers are those of the server", async () => {
  const cells = await row("Domains", "rack-2").locator("td").allInnerTexts();
  assert.equal(cells[0], "500.0 W");
  assert.ok(parseFloat(cells[1]) <= 500, cells[1]);
});

await check("the bar of what is drawn is within that of what is committed", async () => {
  const widths = await row("Domains", "rack-1").locator(".budget-bar i").evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
  assert.ok(widths[1] > 0 && widths[1] <= widths[0] + 0.5, JSON.stringify(widths));
});

await check("who pays most comes first, with limit, slowdown and the worth of a watt", async () => {
  await row("Who pays", "train-steep").waitFor();
  const { json } = await ask("GET", "/v1/budget/jobs");
  const paying = [...json.jobs].sort((a, b) => b.gpus * (b.slowdown - 1) - a.gpus * (a.slowdown - 1));
  const names = await card("Who pays").locator("tbody th").allInnerTexts();
  assert.deepEqual(names, paying.map(({ name }) => name));
  const text = (await row("Who pays", names[0]).locator("td").allInnerTexts()).join(" ");
  assert.match(text, /% of a GPU/);
});

await check("a target shows up with its reason", async () => {
  const at = (hours) => new Date(Date.now() + hours * 3_600_000).toISOString().replace(/\.\d+Z/, "Z");
  const { status } = await ask("POST", "/v1/budget/targets", { start: at(5), end: at(6), watts: 1000, reason: "the grid asked <b>us</b>" });
  assert.equal(status, 201);
  await card("Targets").getByText("the grid asked <b>us</b>").waitFor();
  assert.match(await card("Targets").innerText(), /1000 W/);
});

await check("texts can be read, in the dark too, and nothing is wider than a phone", async () => {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await page.evaluate(faintTexts), []);
  }
  if (shots) await page.screenshot({ path: `${shots}/budget.png`, fullPage: true });
  await page.setViewportSize({ width: 390, height: 800 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390));
  await page.setViewportSize({ width: 1300, height: 900 });
});

await check("a budget that is too small is said, with the jobs to hold", async () => {
  const refused = await ask("PUT", "/v1/budget", { watts: 300 });
  assert.equal(refused.status, 409);
  const { status } = await ask("PUT", "/v1/budget", { watts: 300, confirm: true });
  assert.equal(status, 200);
  await page.locator(".trouble", { hasText: "are missing" }).waitFor();
  assert.match(await page.locator(".trouble").innerText(), /would have to be held/);
});

await check("a node that falls silent is named, and its watts stay reserved", async () => {
  await ask("PUT", "/v1/budget", { watts: 1200, confirm: true });
  await second.stop();
  await card("Nodes that do not report").getByText("n2").waitFor();
  assert.match(await card("Nodes that do not report").innerText(), /stay reserved/);
});

await check("the page has complained about nothing", async () => assert.deepEqual(page.complaints, []));

await first.stop();
await browser.close();
server.kill("SIGTERM");
await ended;
console.log(`${passedChecks()} checks passed`);
