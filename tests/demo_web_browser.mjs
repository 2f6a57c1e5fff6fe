// node demo_web_browser.mjs ADDRESSES: visits the pages of ./dev demo web. ADDRESSES is JSON with the
// address of each of its servers.
import assert from "node:assert/strict";
import { Checks, launch, newPage } from "./browser.mjs";

const addresses = JSON.parse(process.argv[2]);
const jobs = addresses["jobs, savings and pipelines"];
const node = addresses["the node and its GPUs"];
const shots = process.env.ZEUS_SCREENSHOTS;
const browser = await launch();
const checks = new Checks();
const { check } = checks;

try {
  const page = await newPage(browser, { origin: jobs });
  await page.goto(`${jobs}/#/jobs`);
  await check("the job that learns is in the list, and its run counts epochs live", async () => {
    await page.getByRole("link", { name: "digits" }).click();
    await page.getByRole("heading", { name: "Running now" }).waitFor({ timeout: 120_000 });
    await page.getByText(/epoch [1-9]\d* of at most 60/).first().waitFor({ timeout: 120_000 });
    if (shots) await page.screenshot({ path: `${shots}/demo-job.png`, fullPage: true });
  });
  await check("the pipeline is planned and drawn", async () => {
    await page.goto(`${jobs}/#/plans/gpt-demo`);
    await page.locator("#plan .span").first().waitFor({ timeout: 60_000 });
    if (shots) await page.screenshot({ path: `${shots}/demo-pipeline.png`, fullPage: true });
  });
  await check("nothing complains", () => assert.deepEqual(page.complaints, []));
  const hasPage = (await fetch(`${node}/app.json`)).ok; // Otherwise the daemon has requests alone.
  await check("the node's server answers", async () => {
    if (!hasPage) return assert.equal((await fetch(`${node}/openapi.json`)).status, 200);
    const other = await newPage(browser, { origin: node });
    await other.goto(`${node}/`);
    await other.getByText(/gpu:3/).first().waitFor();
    if (shots) await other.screenshot({ path: `${shots}/demo-node.png`, fullPage: true });
    return assert.deepEqual(other.complaints, []);
  });
  const colosseum = addresses["the Colosseum"];
  if (colosseum)
    await check("the Colosseum waits for a question", async () => {
      const arena = await newPage(browser, { origin: colosseum });
      await arena.goto(`${colosseum}/`);
      await arena.locator("textarea").waitFor();
      if (shots) await arena.screenshot({ path: `${shots}/demo-colosseum.png`, fullPage: true });
      assert.deepEqual(arena.complaints, []);
    });
  checks.report();
} finally {
  await browser.close();
}
