// node live_page_browser.mjs MODE SETTING: the pages of a live node in Chromium. The browser reaches
// the servers through a proxy that can cut and slow down connections.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";
import { Checks, faintTexts, launch, newPage } from "./browser.mjs";

const [mode, settingFile] = process.argv.slice(2);
const setting = JSON.parse(readFileSync(settingFile, "utf8"));
const zeus = process.env.ZEUS_BINARY;
const shots = process.env.ZEUS_SCREENSHOTS; // A folder for pictures of every view.
const patience = { timeout: 60_000 }; // Reached on failure only.

const checks = new Checks();
const { check } = checks;

// A page of this origin. `expected` are statuses that the test provokes.
async function openPage(browser, url, { expected = [], ...options } = {}) {
  const page = await newPage(browser, { origin: new URL(url).origin, expected: expected.map((status) => new RegExp(`status of ${status}`)), ...options });
  await page.goto(url);
  return page;
}

// --- servers ---

const children = new Set();

class Program {
  // Starts a program and waits for the line that holds its address.
  static async start(file, words, address, stream = "stdout") {
    const program = new Program();
    program.process = spawn(file, words, { env: setting.environment, stdio: ["ignore", "pipe", "pipe"] });
    children.add(program.process);
    program.ended = new Promise((resolve) => program.process.on("exit", resolve));
    const said = [];
    program.url = await new Promise((resolve, reject) => {
      for (const one of ["stdout", "stderr"])
        createInterface({ input: program.process[one] }).on("line", (line) => {
          said.push(line);
          const found = one === stream && address.exec(line);
          if (found) resolve(found[1]);
        });
      program.process.on("exit", (code) => reject(new Error(`${file} ended with ${code}: ${said.join("\n")}`)));
    });
    return program;
  }
  async stop(signal = "SIGTERM") {
    this.process.kill(signal);
    await this.ended;
    children.delete(this.process);
  }
}

const sim = (...words) => execFileSync(zeus, ["sim", ...words], { env: setting.environment });

function load(gpu, ...words) {
  const process = spawn(zeus, ["sim", "load", "--gpu", String(gpu), ...words], { env: setting.environment, stdio: "ignore" });
  children.add(process);
}

// A port of the loopback interface, or with text the port of all addresses.
const startDaemon = (port = 0, ...more) =>
  Program.start(setting.zeusd, ["serve", "--socket-path", setting.socket, "--config", setting.config,
    "--tcp-bind-address", `${typeof port === "string" ? "0.0.0.0" : "127.0.0.1"}:${port}`, ...more], / and (http:\S+)$/);

// One request to the daemon as root, over its Unix socket.
function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: setting.socket, method, path, headers: { Host: "localhost" } }, (answer) => {
      let text = "";
      answer.on("data", (part) => (text += part));
      answer.on("end", () =>
        answer.statusCode < 300 ? resolve(text && JSON.parse(text)) : reject(new Error(`${method} ${path}: ${text}`)));
    });
    asked.on("error", reject);
    asked.end(body && JSON.stringify(body));
  });
}

// Between the browser and a server: open, cut, or slow.
class Proxy {
  cut = false;
  delay = 0;
  sockets = new Set();
  static async start(url) {
    const proxy = new Proxy();
    proxy.target = Number(new URL(url).port);
    proxy.server = createServer((client) => proxy.take(client));
    await new Promise((resolve) => proxy.server.listen(0, "127.0.0.1", resolve));
    proxy.url = `http://127.0.0.1:${proxy.server.address().port}/`;
    return proxy;
  }
  take(client) {
    if (this.cut) return client.destroy();
    const server = connect(this.target, "127.0.0.1");
    for (const [from, to] of [[client, server], [server, client]]) {
      this.sockets.add(from);
      from.on("data", (bytes) => (this.delay ? setTimeout(() => to.write(bytes), this.delay) : to.write(bytes)));
      from.on("close", () => (this.sockets.delete(from), to.destroy()));
      from.on("error", () => to.destroy());
    }
  }
  setCut(cut) {
    this.cut = cut;
    if (cut) for (const socket of this.sockets) socket.destroy();
  }
}

// --- what is seen ---

const card = (page, name) => page.getByRole("region", { name, exact: true });
const status = (page) => page.locator(".title .status");
const isLive = (page) => status(page).getByText("Live", { exact: true }).waitFor(patience);

// Runs in the page: how much of the chart has a colour of the page, as shares of all pixels.
function inks(names) {
  const canvas = document.querySelector(".power-chart canvas");
  const style = getComputedStyle(canvas);
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data, width, height } = copy.getImageData(0, 0, canvas.width, canvas.height);
  return names.map((name) => {
    const hex = style.getPropertyValue(`--${name}`).trim();
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    let count = 0;
    for (let i = 0; i < data.length; i += 4)
      if (data[i + 3] > 200 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 12) ++count;
    return count / (width * height);
  });
}
// Waits until the share of a colour is as wanted. The page's policy lets no text become code, so that
// the test looks again by itself.
async function waitForInk(page, name, wanted) {
  const deadline = Date.now() + patience.timeout;
  for (;;) {
    const [share] = await page.evaluate(inks, [name]);
    if (wanted(share)) return;
    assert.ok(Date.now() < deadline, `${name} has a share of ${share}`);
    await new Promise((go) => setTimeout(go, 100));
  }
}
const hasInk = (page, name, least) => waitForInk(page, name, (share) => share > least);

async function shoot(page, name) {
  if (shots) await page.screenshot({ path: `${shots}/${name}.png` });
}

const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

// --- the three servers ---

async function daemonPages(browser) {
  load(0, "--workload", "resnet50", "--batch-size", "256");
  load(1, "--watts", "260");
  let daemon = await startDaemon();
  const port = Number(new URL(daemon.url).port);
  const proxy = await Proxy.start(daemon.url);
  const { gpus } = await ask("GET", "/v1/node");
  await ask("PUT", "/v1/budget", { name: "rack budget", valid_seconds: 3000,
    requests: [{ device: gpus[3].device, knob: "gpu_power_limit", at_most: { watts: 220 } }] });

  for (const colorScheme of ["light", "dark"]) {
    const page = await openPage(browser, proxy.url, { colorScheme });
    await isLive(page);
    await check(`every GPU has a card with its power and its ± (${colorScheme})`, async () => {
      for (const { name } of gpus)
        await card(page, name).getByText(/\d ± \d|± \d/).first().waitFor(patience);
    });
    await check(`the chart has the lines of busy devices (${colorScheme})`, async () => {
      await hasInk(page, "role-zeus", 0.0002);
      await hasInk(page, "role-front", 0.0002);
    });
    await check(`text is legible (${colorScheme})`, async () => assert.deepEqual(await page.evaluate(faintTexts), []));
    await shoot(page, `node-${colorScheme}`);
    await check(`a cap tells who set it, and needs no click (${colorScheme})`, async () =>
      card(page, "gpu:3").getByText(/220 W set by a site lease/).waitFor(patience));
    await check(`nothing jumps and nothing complains (${colorScheme})`, async () => {
      assert.ok((await page.evaluate(() => window.layoutShift)) < 0.1);
      assert.deepEqual(page.complaints, []);
    });
    await page.close();
  }

  const page = await openPage(browser, proxy.url, { expected: [404] });
  await isLive(page);
  await check("devices without work are named with what they wasted, the most first", async () => {
    const first = page.locator(".wastes li").first();
    await first.waitFor(patience);
    assert.match(await first.innerText(), /^gpu:[23] had nothing to do for .* and drew .* Wh meanwhile/);
  });
  await check("every span of time has an address and its lines", async () => {
    for (const [name, seconds] of [["1 min", 60], ["2 h", 7200], ["2 days", 172800]]) {
      await page.getByRole("button", { name, exact: true }).click();
      await page.waitForFunction((wanted) => location.hash.includes(`seconds=${wanted}`), seconds, patience);
      await hasInk(page, "role-zeus", 0.00002);
    }
  });
  await check("a hidden device leaves the chart", async () => {
    await page.getByRole("button", { name: "1 min", exact: true }).click();
    await hasInk(page, "role-zeus", 0.0002);
    await page.locator(".power-chart .legend button", { hasText: "gpu:0" }).click();
    await waitForInk(page, "role-zeus", (share) => share < 0.0001);
    await page.locator(".power-chart .legend button", { hasText: "gpu:0" }).click();
  });
  await check("the keyboard reaches the chart and walks through it", async () => {
    await page.getByRole("button", { name: "2 days", exact: true }).focus();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "CANVAS");
    await page.keyboard.press("ArrowLeft");
    const spoken = page.locator(".power-chart .spoken");
    await page.waitForFunction(() => /gpu:0 \d+/.test(document.querySelector(".power-chart .spoken").textContent), null, patience);
    const first = await spoken.textContent();
    await page.keyboard.press("ArrowLeft");
    await page.waitForFunction((before) => document.querySelector(".power-chart .spoken").textContent !== before, first, patience);
    await page.keyboard.press("Escape");
  });
  await check("a device has a page of its own, one click away", async () => {
    await card(page, "gpu:3").getByRole("link", { name: "gpu:3" }).click();
    await page.getByRole("row", { name: /power limit 220 W 400 W set by a site lease/ }).waitFor(patience);
    await shoot(page, "device");
    await page.goBack();
  });
  await check("a lease that comes and goes is seen at once", async () => {
    const lease = await ask("POST", "/v1/leases", { name: "bert", holder: "ttl", ttl_seconds: 600,
      requests: [{ device: gpus[1].device, knob: "gpu_power_limit", exactly: { watts: 250 } }] });
    await card(page, "gpu:1").getByText(/250 W set by a user lease/).waitFor(patience);
    await ask("DELETE", `/v1/leases/${lease.id}`);
    await card(page, "gpu:1").getByText(/400 W the default/).waitFor(patience);
  });
  await check("a GPU that is lost is told in words with what helps, and comes back", async () => {
    sim("fault", "--gpu", "2", "--kind", "lost");
    await page.getByRole("alert").getByText(/gpu:2 (is lost|cannot be read)/).waitFor(patience);
    await card(page, "gpu:2").getByText("–", { exact: true }).first().waitFor(patience);
    await shoot(page, "lost");
    sim("fault", "--gpu", "2", "--kind", "clear");
    await card(page, "gpu:2").getByText(/\d/).first().waitFor(patience);
    await page.getByRole("alert").waitFor({ ...patience, state: "detached" });
  });
  await check("text is legible with a fault, and a slow network is only slow", async () => {
    assert.deepEqual(await page.evaluate(faintTexts), []);
    proxy.delay = 400;
    const slow = await openPage(browser, proxy.url);
    await isLive(slow);
    assert.deepEqual(slow.complaints, []);
    await slow.close();
    proxy.delay = 0;
  });
  page.complaints.length = 0;
  await check("a tab that lost the server says so, comes back by itself and knows what it missed", async () => {
    await page.getByRole("button", { name: "1 min", exact: true }).click();
    await page.getByRole("button", { name: "10 min", exact: true }).click();
    await isLive(page);
    await hasInk(page, "role-zeus", 0.00002);
    // What lies before the start of the daemon is not known, and no more than that.
    const [unknown] = await page.evaluate(inks, ["absent"]);
    proxy.setCut(true);
    await status(page).getByText(/No connection/).waitFor(patience);
    const cutAt = (await ask("GET", "/v1/readings")).at_seconds;
    // The node is recorded meanwhile, and the page must show it afterwards.
    while ((await ask("GET", "/v1/readings")).at_seconds < cutAt + 6) await new Promise((go) => setTimeout(go, 200));
    proxy.setCut(false);
    await isLive(page);
    await waitForInk(page, "absent", (share) => share <= unknown + 0.0005);
  });
  await check("a daemon that is killed and started again is followed again", async () => {
    await daemon.stop("SIGKILL");
    await status(page).getByText(/No connection/).waitFor(patience);
    daemon = await startDaemon(port);
    await isLive(page);
    await card(page, "gpu:0").getByText(/± \d/).first().waitFor(patience);
  });
  await check("what the browser complained of was the cut connection alone", () =>
    assert.deepEqual(page.complaints.filter((text) => !/ERR_(CONNECTION|EMPTY|INCOMPLETE|SOCKET)/.test(text)), []));
  await page.close();

  const phone = await openPage(browser, proxy.url, { viewport: { width: 360, height: 740 } });
  await check("nothing is wider than a phone", async () => {
    await isLive(phone);
    await card(phone, "gpu:3").waitFor(patience);
    assert.ok((await fits(phone)) <= 0);
    await shoot(phone, "node-phone");
    await phone.goto(`${proxy.url}#/node/gpu:3`);
    await phone.getByText("PCI address").waitFor(patience);
    assert.ok((await fits(phone)) <= 0);
    assert.deepEqual(phone.complaints, []);
  });
  await check("another host name gets neither the page nor the data", async () => {
    for (const path of ["/", "/app.json", "/v1/node", "/v1/readings"]) {
      const answer = await new Promise((resolve, reject) =>
        request({ port, host: "127.0.0.1", path, headers: { Host: "attacker.example" } }, resolve).on("error", reject).end());
      assert.equal(answer.statusCode, 403, path);
      answer.resume();
    }
  });
  await phone.close();
  await daemon.stop();
}

async function tokenPages(browser) {
  const daemon = await startDaemon(0, "--signing-key-path", setting.key);
  const { gpus } = await ask("GET", "/v1/node");
  await ask("POST", "/v1/leases", { name: "bert run", holder: "ttl", ttl_seconds: 600,
    requests: [{ device: gpus[1].device, knob: "gpu_power_limit", exactly: { watts: 250 } }] });
  const page = await openPage(browser, daemon.url, { expected: [401] });
  const field = page.getByLabel("Token");
  await check("a token is asked for, and the form is legible", async () => {
    await field.waitFor(patience);
    assert.deepEqual(await page.evaluate(faintTexts), []);
    await shoot(page, "sign-in");
  });
  await check("a wrong token is refused with the server's sentence", async () => {
    await field.fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor(patience);
    assert.match(await page.getByRole("alert").innerText(), /token/);
  });
  await check("the right one shows the node, and who holds a knob by name", async () => {
    await field.fill(setting.token);
    await page.keyboard.press("Enter");
    await isLive(page);
    await card(page, "gpu:1").getByText(/250 W set by a user lease “bert run” of uid:0/).waitFor(patience);
  });
  await check("the token is in no address and in no storage that outlives the tab", async () => {
    assert.ok(!page.url().includes(setting.token));
    assert.equal(await page.evaluate((token) => JSON.stringify({ ...localStorage }).includes(token) || document.cookie.includes(token), setting.token), false);
  });
  await check("signing out asks again", async () => {
    await page.getByRole("button", { name: "Sign out" }).click();
    await field.waitFor(patience);
    assert.deepEqual(page.complaints, []);
  });
  await daemon.stop();
}

async function monitorPages(browser) {
  load(1, "--watts", "300");
  const monitor = await Program.start(zeus, ["monitor", "--serve", "127.0.0.1:0", "--quiet", "--carbon", "350g/kWh", "--price", "0.31EUR"],
    /in a browser: (\S+)$/, "stderr");
  const page = await openPage(browser, monitor.url);
  await check("zeus monitor serves the page with live readings", async () => {
    await isLive(page);
    await card(page, "gpu:1").getByText(/± \d/).first().waitFor(patience);
    await hasInk(page, "role-front", 0.0001);
  });
  await check("emissions and cost are told where they are configured", async () => {
    await page.locator(".number-box dt", { hasText: "carbon" }).waitFor(patience);
    await page.locator(".number-box dt", { hasText: "cost" }).waitFor(patience);
  });
  await check("there is nothing about leases, which it does not know", async () =>
    assert.equal(await page.getByText(/lease/).count(), 0));
  await check("text is legible and nothing complains", async () => {
    assert.deepEqual(await page.evaluate(faintTexts), []);
    assert.deepEqual(page.complaints, []);
  });
  await check("metrics and health are where they were", async () => {
    const get = async (path) => (await fetch(monitor.url + path)).text();
    assert.match(await get("/metrics"), /zeus_device_up\{device="gpu:0"\} 1/);
    assert.equal(await get("/-/healthy"), "zeus is healthy\n");
  });
  await check("the end of the program is told", async () => {
    await monitor.stop("SIGINT");
    await status(page).getByText(/No connection/).waitFor(patience);
  });
}

async function fleetPages(browser) {
  load(0, "--watts", "300");
  const daemon = await startDaemon("0", "--insecure");
  const port = Number(/:(\d+)$/.exec(daemon.url)[1]);
  // The daemon answers on every address of the loopback interface: a node each.
  const nodes = [];
  for (let i = 0; i < 300; ++i) nodes.push(`http://127.0.${1 + Math.floor(i / 100)}.${1 + (i % 100)}:${port}`);
  const file = `${setting.folder}/nodes`;
  writeFileSync(file, `# nodes\n${nodes.join("\n")}\nhttp://127.0.9.9:1\n`);
  const fleet = await Program.start(zeus, ["fleet", "--nodes-file", file, "--listen", "127.0.0.1:0", "--interval", "2",
    "--best-limit", "NVIDIA A100-SXM4-40GB=250"], /in a browser: (\S+)$/, "stderr");
  const page = await openPage(browser, fleet.url);
  const rows = page.locator(".fleet tbody tr");
  const number = (label) => page.locator(".number-box", { has: page.getByText(label, { exact: true }) }).locator("dd");
  await check("all nodes are counted with their GPUs and their waste", async () => {
    await number("Nodes").getByText(/^301/).waitFor(patience);
    await number("GPUs").getByText("1200").waitFor(patience);
    await number("Waste").getByText(/kW/).waitFor(patience);
  });
  await check("of all rows those in sight exist", async () => {
    const count = await rows.count();
    assert.ok(count > 10 && count < 60, `${count}`);
  });
  await check("waste is what is drawn without work and above the best limit", async () => {
    const [idle, above, waste] = await Promise.all(["idle", "above", "waste"].map(async (name) =>
      parseFloat(await rows.first().locator(`td.${name}`).innerText())));
    assert.ok(idle > 100 && above > 20, `${idle} ${above}`);
    assert.ok(Math.abs(idle + above - waste) < 1, `${idle} ${above} ${waste}`);
  });
  await check("every node has its past and leads to its page", async () => {
    await page.locator(".sparkline path[d*=L]").first().waitFor({ ...patience, state: "attached" });
    assert.match(await rows.first().getByRole("link").getAttribute("href"), /^http:\/\/127\.0\.\d+\.\d+:\d+/);
  });
  await check("a press sorts, and the last node comes into sight when one scrolls there", async () => {
    await page.getByRole("button", { name: "Node" }).click();
    await page.locator(".fleet").evaluate((box) => (box.scrollTop = box.scrollHeight));
    await rows.filter({ hasText: "127.0.9.9:1" }).waitFor(patience);
  });
  await check("a node that does not answer says why", async () => {
    await page.getByRole("searchbox").fill("127.0.9.9");
    await rows.first().locator("small.bad").waitFor(patience);
    assert.match(await rows.first().innerText(), /127\.0\.9\.9:1\n.{10}/);
  });
  await check("text is legible and nothing complains, in light and dark", async () => {
    assert.deepEqual(await page.evaluate(faintTexts), []);
    const dark = await openPage(browser, fleet.url, { colorScheme: "dark" });
    await dark.locator(".fleet tbody tr").first().waitFor(patience);
    await shoot(dark, "fleet-dark");
    assert.deepEqual(await dark.evaluate(faintTexts), []);
    assert.deepEqual([...dark.complaints, ...page.complaints], []);
  });
  await check("nothing is wider than a phone", async () => {
    const phone = await openPage(browser, fleet.url, { viewport: { width: 360, height: 740 } });
    await phone.locator(".fleet tbody tr").first().waitFor(patience);
    await shoot(phone, "fleet-phone");
    assert.ok((await fits(phone)) <= 0);
  });
  await check("the end of the collector is told", async () => {
    await fleet.stop("SIGINT");
    await page.getByText(/not up to date/).waitFor(patience);
  });
}

const browser = await launch();
try {
  await { daemon: daemonPages, fleet: fleetPages, token: tokenPages, monitor: monitorPages }[mode](browser);
  checks.report();
} finally {
  await browser.close();
  for (const child of children) child.kill("SIGKILL");
}
process.exit(0);
