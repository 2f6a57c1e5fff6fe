// node serve_pages_browser.mjs FOLDER SPEC: the pages of `zeus serve` in Chromium, with real servers on
// a database in FOLDER behind them. SPEC is a file with a pipeline to plan for.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Checks, faintTexts, launch, newPage } from "./browser.mjs";

const [folder, spec] = process.argv.slice(2);
const zeus = process.env.ZEUS_BINARY;
const shots = process.env.ZEUS_SCREENSHOTS; // A folder for pictures of every view.

// --- servers and what happens on them ---

class Server {
  static async start({ database = "zeus.db", listen = "127.0.0.1:0", options = [] } = {}) {
    const server = new Server();
    server.process = spawn(zeus, ["serve", "--listen", listen, "--no-access-log", "--database",
      `sqlite://${folder}/${database}`, ...options], { stdio: ["ignore", "pipe", "inherit"] });
    server.ended = new Promise((resolve) => server.process.on("exit", resolve));
    const lines = createInterface({ input: server.process.stdout });
    const [line] = await Promise.race([
      lines[Symbol.asyncIterator]().next().then(({ value }) => [value]),
      server.ended.then((code) => { throw new Error(`zeus serve ended with ${code}`); }),
    ]);
    server.url = line.replace("listening on ", "");
    return server;
  }

  async ask(method, path, body, token) {
    const answer = await fetch(this.url + path, {
      method,
      headers: token ? { Authorization: `Bearer ${token}` } : {},
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  async stop(signal = "SIGTERM") {
    this.process.kill(signal);
    await this.ended;
  }
}

// A training with known costs: the run of every batch size.
const truth = {
  32: { epochs: 10, joules: 1400 }, 64: { epochs: 8, joules: 1000 },
  128: { epochs: 9, joules: 900 }, 256: { epochs: 16, joules: 860 },
};
const secondsPerEpoch = 10;

function report(trial, epoch, { undisturbed = false } = {}) {
  const { epochs, joules } = truth[trial.batch_size];
  // Runs differ a little, always in the same way.
  const wobble = 1 + 0.03 * Math.sin(7 * trial.number);
  return {
    epoch,
    time_seconds: epoch * secondsPerEpoch * wobble,
    energy_joules: epoch * joules * wobble,
    metric: epoch >= epochs ? 0.95 : 0.9 * (epoch / epochs),
    ...(undisturbed ? { undisturbed } : { power_limit_watts: 200 }),
  };
}

async function begin(server, job, fields = {}, token) {
  return (await server.ask("POST", `/v1/jobs/${job}/trials`, fields, token)).trial;
}

async function finish(server, job, trial, from, options, token) {
  for (let epoch = from; epoch <= 100; ++epoch) {
    const answer = await server.ask("POST", `/v1/jobs/${job}/trials/${trial.number}/reports`,
      report(trial, epoch, options), token);
    if (answer.stop) return answer;
  }
  throw new Error("the run did not end");
}

async function recur(server, job, token) {
  let answer;
  let recurrence = {};
  do {
    const trial = await begin(server, job, recurrence, token);
    recurrence = { recurrence: trial.recurrence };
    answer = await finish(server, job, trial, 1, {}, token);
  } while (answer.retry);
}

const mnist = {
  id: "mnist", batch_sizes: [32, 64, 128, 256], default_batch_size: 256, target_metric: 0.9,
  max_power_watts: 250, gpu_model: "V100", seed: 7, labels: { team: "vision" },
};

async function fill(server, token) {
  await server.ask("POST", "/v1/jobs", mnist, token);
  for (let i = 0; i < 3; ++i) {
    const trial = await begin(server, "mnist", { baseline: true }, token);
    await finish(server, "mnist", trial, 1, { undisturbed: true }, token);
  }
  for (let i = 0; i < 14; ++i) await recur(server, "mnist", token);
  const failed = await begin(server, "mnist", {}, token);
  await server.ask("POST", `/v1/jobs/mnist/trials/${failed.number}/reports`, report(failed, 1), token);
  await server.ask("POST", `/v1/jobs/mnist/trials/${failed.number}/end`, { status: "failed", reason: "out of memory" }, token);
  await server.ask("POST", "/v1/jobs", { ...mnist, id: "bert:large", labels: {} }, token);
  await recur(server, "bert:large", token);
  await server.ask("POST", "/v1/jobs", { ...mnist, id: "new", policy: "zeus", labels: {} }, token);
  await server.ask("POST", "/v1/plans", readFileSync(spec, "utf8"), token);
}

// --- what is looked at ---

const browser = await launch();
const checks = new Checks();
const { check } = checks;
// A server that is away is what some tests are about.
const away = [/Failed to load resource/, /net::ERR_/];

async function open(server, path = "", options = {}) {
  const page = await newPage(browser, { origin: server.url, ...options });
  await page.goto(`${server.url}/${path}`);
  return page;
}

const text = (page, selector) => page.locator(selector).first().innerText();
const waitFor = (page, words) => page.getByText(words).first().waitFor();

const views = [
  ["jobs", "#/jobs", (page) => page.getByRole("link", { name: "mnist" }).waitFor()],
  ["job", "#/jobs/mnist", (page) => page.locator("#recurrences .series").first().waitFor()],
  ["eta", "#/jobs/mnist?eta=0", (page) => page.locator(".finding").waitFor()],
  ["job-without-runs", "#/jobs/new", (page) => waitFor(page, "This job has never run.")],
  ["pipelines", "#/plans", (page) => page.getByRole("link", { name: "gpt" }).waitFor()],
  ["pipeline", "#/plans/gpt", (page) => page.locator("#plan .span").first().waitFor()],
];

async function looks(server, name, hash, ready, options) {
  const { label, ...pageOptions } = options;
  const page = await open(server, hash, pageOptions);
  await ready(page);
  await page.evaluate(() => document.fonts.ready);
  await check(`${name} is legible (${label})`, async () =>
    assert.deepEqual(await page.evaluate(faintTexts), []));
  await check(`${name} is no wider than the window (${label})`, async () =>
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)));
  await check(`${name} names what can be used (${label})`, async () =>
    assert.deepEqual(await page.$$eval("button, a, input, [role=img], [role=region]", (all) =>
      all.filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length))
        .map((one) => one.outerHTML)), []));
  await check(`nothing complains about ${name} (${label})`, () => assert.deepEqual(page.complaints, []));
  if (shots) await page.screenshot({ path: `${shots}/${name}-${label}.png`, fullPage: true });
  await page.close();
}

async function everyView(server) {
  for (const [name, hash, ready] of views) {
    await looks(server, name, hash, ready, { label: "light", colorScheme: "light" });
    await looks(server, name, hash, ready, { label: "dark", colorScheme: "dark" });
    await looks(server, name, hash, ready, { label: "360", viewport: { width: 360, height: 780 } });
  }
}

async function questions(server) {
  const page = await open(server);
  await check("what was saved this week is on the first page", async () => {
    const box = page.locator(".number-box", { hasText: "this week" });
    await box.waitFor();
    assert.match(await box.innerText(), /[\d.]+ ± [\d.]+ k?Wh/);
    assert.match(await box.innerText(), /14 trainings of 1 job/);
    assert.match(await page.locator(".card", { hasText: "Saved by Zeus" }).innerText(), /bert:large/);
  });
  await check("whether a job is done learning is on the first page, and its reason a click away", async () => {
    const row = page.getByRole("row", { name: /mnist/ });
    assert.match(await row.innerText(), /learning|done for now/);
    await row.getByRole("link", { name: "mnist" }).click();
    await page.locator(".outlook").waitFor();
    assert.match(await text(page, ".outlook"), /^(Still learning|Done learning for now)/);
    assert.match(await text(page, ".why"), /batch size \d+/i);
  });
  await check("the page says what zeus job show says", async () => {
    const shown = execFileSync(zeus, ["job", "show", "mnist", "--server", server.url], { encoding: "utf8" });
    assert.ok(shown.includes(await text(page, ".why")), shown);
    const saved = await text(page, ".card:has(h2:text-is('Against the default')) .number-box dd");
    assert.ok(shown.includes(`energy ${saved.split("\n")[0]}`), `${saved} ${shown}`);
  });
  await check("savings, recurrences and the page's address", async () => {
    assert.match(page.url(), /#\/jobs\/mnist$/);
    const names = await page.$$eval("#recurrences .legend button", (all) => all.map((one) => one.textContent.trim()));
    for (const name of ["used what is known", "explored", "failed", "undisturbed default"])
      assert.ok(names.includes(name), names.join());
  });
  await check("a job without a baseline says what is missing", async () => {
    await page.goto(`${server.url}/#/jobs/bert:large`);
    await waitFor(page, /undisturbed runs of the default .* are the least to compare with/);
  });
  await page.close();
}

async function list(server) {
  const page = await open(server, "#/jobs");
  await page.getByRole("link", { name: "mnist" }).waitFor();
  const names = () => page.$$eval("table.jobs tbody th a", (all) => all.map((one) => one.textContent));
  await check("the list is searched and sorted", async () => {
    assert.deepEqual(await names(), ["bert:large", "mnist", "new"]);
    await page.getByRole("button", { name: "recurrences" }).click();
    await page.getByRole("button", { name: "recurrences" }).click();
    assert.equal((await names())[0], "mnist");
    await page.getByLabel(/Find jobs/).fill("team:vis");
    assert.deepEqual(await names(), ["mnist"]);
    await page.getByLabel(/Find jobs/).fill("nothing like it");
    await waitFor(page, "No job fits.");
  });
  await check("the keyboard alone reaches a job", async () => {
    await page.goto(`${server.url}/#/plans`);
    await page.goto(`${server.url}/#/jobs`);
    await page.getByRole("link", { name: "mnist" }).waitFor();
    for (let i = 0; i < 40; ++i) {
      await page.keyboard.press("Tab");
      if (await page.evaluate(() => document.activeElement.textContent === "mnist")) break;
    }
    await page.keyboard.press("Enter");
    await page.locator(".outlook").waitFor();
  });
  await check("nothing complains about the list", () => assert.deepEqual(page.complaints, []));
  await page.close();
}

async function live(server) {
  const pageOfList = await open(server, "#/jobs", { expected: away });
  const page = await open(server, "#/jobs/mnist", { expected: away });
  await page.getByText("live", { exact: true }).waitFor();
  await pageOfList.getByText("live", { exact: true }).waitFor();
  const trial = await begin(server, "mnist", { gpu_model: "V100" });
  await check("a run appears while one looks", async () => {
    await waitFor(page, `Trial ${trial.number}`);
    await page.getByRole("heading", { name: "Running now" }).waitFor();
    await waitFor(pageOfList, `batch size ${trial.batch_size}, epoch 0`);
    assert.ok((await page.locator(".trials").innerText()).includes(trial.why));
  });
  await check("its epochs are counted live, on both pages", async () => {
    for (const epoch of [1, 2]) {
      await server.ask("POST", `/v1/jobs/mnist/trials/${trial.number}/reports`, report(trial, epoch));
      await waitFor(page, `epoch ${epoch} of at most 100`);
      await waitFor(pageOfList, `batch size ${trial.batch_size}, epoch ${epoch}`);
    }
  });
  await check("nothing moves while it counts", async () =>
    assert.ok(await page.evaluate(() => window.layoutShift) < 0.1));
  const [, listen] = server.url.split("://");
  await server.stop("SIGKILL");
  await check("a server that is away is admitted", () => waitFor(page, /not live: .*; trying again/));
  const again = await Server.start({ listen });
  try {
    await check("the page goes on by itself when the server is back", async () => {
      await page.getByText("live", { exact: true }).waitFor();
      await again.ask("POST", `/v1/jobs/mnist/trials/${trial.number}/reports`, report(trial, 3));
      await waitFor(page, "epoch 3 of at most 100");
      await waitFor(pageOfList, `batch size ${trial.batch_size}, epoch 3`);
      await finish(again, "mnist", trial, 4);
      await page.getByRole("heading", { name: "Nothing runs now" }).waitFor();
    });
    await check("a new job appears in the list, and a deleted one goes", async () => {
      await again.ask("POST", "/v1/jobs", { ...mnist, id: "guest", labels: {} });
      await pageOfList.getByRole("link", { name: "guest" }).waitFor();
      await again.ask("DELETE", "/v1/jobs/guest");
      await pageOfList.getByRole("link", { name: "guest" }).waitFor({ state: "detached" });
    });
    await check("nothing else complains", () =>
      assert.deepEqual([...page.complaints, ...pageOfList.complaints], []));
  } finally {
    await page.close();
    await pageOfList.close();
  }
  return again;
}

async function whatIf(server) {
  const page = await open(server, "#/jobs/mnist");
  const slider = page.getByLabel(/what if eta were/);
  await slider.waitFor();
  await check("the slider says what another eta had chosen, and the address keeps it", async () => {
    await slider.focus();
    await page.keyboard.press("Home");
    await page.locator(".finding").waitFor();
    await waitFor(page, /With eta 0, batch size \d+ would be the choice/);
    await page.waitForURL(/eta=0$/);
    await waitFor(page, /power limits are those that were chosen for eta 0.5/);
  });
  await check("what it says is the server's answer", async () => {
    const arms = await server.ask("GET", "/v1/jobs/mnist/arms?eta=0");
    assert.ok((await text(page, ".finding")).includes(`batch size ${arms.best_batch_size} would`));
    const chosen = page.locator("tr.best-arm th");
    assert.equal(await chosen.innerText(), String(arms.best_batch_size));
  });
  await check("nothing complains about it", () => assert.deepEqual(page.complaints, []));
  await page.close();
}

async function pipelines(server) {
  const page = await open(server, "#/plans");
  await page.getByRole("link", { name: "gpt" }).click();
  await page.locator("#plan .span").first().waitFor();
  await check("the plan has a box for every instruction", async () => {
    const { plan } = await server.ask("GET", "/v1/plans/gpt");
    assert.equal(await page.locator("#plan .span").count(), plan.stages.flat().length);
  });
  await check("the frontier has the plan on it", () => page.locator("#frontier .series.knowledge_gradient circle").waitFor());
  await check("another deadline is planned for and drawn", async () => {
    await page.getByRole("slider").focus();
    await page.keyboard.press("End");
    await waitFor(page, "Another plan; the one that holds stays");
    await page.waitForURL(/slowdown=/);
    await page.getByRole("button", { name: "Back to the plan that holds" }).click();
    await waitFor(page, /Plan, version 1/);
  });
  await check("a straggler shows", async () => {
    await server.ask("POST", "/v1/plans/gpt/pace", { pace_seconds: 1e3 });
    await waitFor(page, /A straggler makes iterations take/);
  });
  await check("nothing complains about pipelines", () => assert.deepEqual(page.complaints, []));
  await page.close();
}

async function tokens() {
  const file = `${folder}/tokens`;
  const make = (...more) => execFileSync(zeus, ["serve", "--tokens", file, "--new-token", ...more], { encoding: "utf8" }).trim();
  const writer = make("ci");
  const reader = make("tv", "--read-only");
  const server = await Server.start({ database: "tokens.db", options: ["--tokens", file] });
  try {
    await server.ask("POST", "/v1/jobs", mnist, writer);
    await recur(server, "mnist", writer);
    const page = await open(server, "#/jobs/mnist", { expected: away });
    await check("without a token the page asks for one and shows nothing", async () => {
      await page.getByLabel("Token").waitFor();
      assert.ok(!(await page.content()).includes("knowledge_gradient"));
    });
    await check("a wrong token is refused in words", async () => {
      await page.getByLabel("Token").fill("zeus_wrong");
      await page.getByRole("button", { name: "Sign in" }).last().click();
      await page.locator("[role=alert]").waitFor();
      assert.match(await text(page, "[role=alert]"), /token/);
    });
    await check("a reader sees the job and may export it, but sees no deletion", async () => {
      const rights = page.waitForResponse((answer) => answer.url().endsWith("/v1/me") && answer.ok());
      await page.getByLabel("Token").fill(reader);
      await page.keyboard.press("Enter");
      await page.locator(".outlook").waitFor();
      await page.getByRole("button", { name: "Export" }).waitFor();
      assert.equal((await (await rights).json()).may_change, false);
      assert.equal(await page.getByRole("button", { name: /Delete/ }).count(), 0);
      const waiting = page.waitForEvent("download");
      await page.getByRole("button", { name: "Export" }).click();
      const lines = readFileSync(await (await waiting).path(), "utf8").trim().split("\n").map(JSON.parse);
      assert.equal(lines[0].schema, "zeus.job_export/1");
      assert.ok(!page.url().includes("zeus_"), page.url());
    });
    await page.close();
    const owner = await open(server, "#/jobs/mnist", { expected: away });
    await owner.getByLabel("Token").fill(writer);
    await owner.keyboard.press("Enter");
    await check("who may delete must type the name, and can think better of it", async () => {
      await owner.getByRole("button", { name: "Delete …" }).click();
      const remove = owner.locator("dialog button.danger");
      assert.ok(await remove.isDisabled());
      assert.deepEqual(await owner.evaluate(faintTexts, "dialog"), []);
      await owner.getByRole("button", { name: "Keep it" }).click();
      await owner.locator("dialog").waitFor({ state: "detached" });
      await owner.getByRole("button", { name: "Delete …" }).click();
      await owner.getByLabel(/Type the name/).fill("mnist");
      await remove.click();
      await waitFor(owner, "No jobs yet");
      assert.deepEqual((await server.ask("GET", "/v1/jobs", undefined, writer)).jobs, []);
    });
    await check("nothing complains about tokens", () => assert.deepEqual([...page.complaints, ...owner.complaints], []));
    await owner.close();
  } finally {
    await server.stop();
  }
}

let server = await Server.start();
try {
  await fill(server);
  await questions(server);
  await list(server);
  await everyView(server);
  server = await live(server);
  await whatIf(server);
  await pipelines(server);
  await tokens();
  checks.report();
} finally {
  server.process.kill();
  await browser.close();
}
