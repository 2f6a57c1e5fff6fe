// node report_page_browser.mjs DIR: opens what write_samples wrote there in Chromium and looks.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Checks, faintTexts, launch, newPage } from "./browser.mjs";

const folder = process.argv[2];
const browser = await launch();
const checks = new Checks();
const { check } = checks;

async function open(name, options) {
  const page = await newPage(browser, options);
  await page.goto(pathToFileURL(`${folder}/${name}.html`).href);
  await page.waitForSelector(".series");
  return page;
}

const marks = ".series :is(path[d]:not([d='']), circle, rect), .cell";

try {
  for (const colorScheme of ["light", "dark"]) {
    const page = await open("sample", { colorScheme });
    await check(`every figure has marks (${colorScheme})`, async () => {
      const counts = await page.$$eval("figure", (figures, wanted) =>
        figures.map((figure) => [...figure.querySelectorAll(".panel")]
          .map((panel) => panel.querySelectorAll(wanted).length)), marks);
      assert.equal(counts.length, 5);
      assert.ok(counts.flat().every((count) => count > 0), JSON.stringify(counts));
    });
    await check(`text is legible (${colorScheme})`, async () =>
      assert.deepEqual(await page.evaluate(faintTexts), []));
    await check(`nothing complains (${colorScheme})`, () => assert.deepEqual(page.complaints, []));
    await page.close();
  }

  const page = await open("sample");
  const chart = page.locator("#figure-7 svg[role=img]");
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  const at = (x, y) => [box.x + box.width * x, box.y + box.height * y];
  const ticks = () => page.$$eval("#figure-7 .tick.middle", (all) => all.map((t) => t.textContent));

  await check("pointing at a chart tells all series of that x beside it", async () => {
    await page.mouse.move(...at(0.5, 0.6));
    const tip = page.locator("#figure-7 .tip");
    const text = await tip.innerText();
    for (const name of ["recurrence: ", "Zeus", "Knowledge gradient", "Default"])
      assert.ok(text.includes(name), text);
    const place = await tip.boundingBox();
    assert.ok(place.y > box.y && place.y + place.height < box.y + box.height + 80, "far away");
  });
  await check("dragging zooms and the button shows everything again", async () => {
    const before = await ticks();
    await page.mouse.move(...at(0.3, 0.3));
    await page.mouse.down();
    await page.mouse.move(...at(0.5, 0.31), { steps: 4 });
    await page.mouse.up();
    assert.notDeepEqual(await ticks(), before);
    await page.locator("#figure-7 .reset").click();
    assert.deepEqual(await ticks(), before);
  });
  await check("the legend hides a series", async () => {
    const series = () => page.locator("#figure-7 .series").count();
    const before = await series();
    await page.locator("#figure-7 .legend button", { hasText: "Grid search" }).click();
    assert.equal(await series(), before - 1);
  });
  await check("arrow keys walk through the points", async () => {
    await page.mouse.move(0, 0);
    await chart.focus();
    await page.keyboard.press("ArrowRight");
    const first = await page.locator("#figure-7 .spoken").textContent();
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await page.locator("#figure-7 .spoken").textContent(), first);
  });
  await check("pointing at a span tells what it is, and timelines lie one below the other", async () => {
    const timeline = page.locator("#timeline svg[role=img]");
    const before = await timeline.nth(0).boundingBox();
    const after = await timeline.nth(1).boundingBox();
    assert.equal(before.x, after.x);
    await timeline.nth(1).scrollIntoViewIfNeeded();
    const span = await page.locator("#timeline .panel:nth-child(2) .span").nth(5).boundingBox();
    await page.mouse.move(span.x + span.width / 2, span.y + span.height / 2);
    const text = await page.locator("#timeline .tip").innerText();
    for (const part of ["forward 5 of stage 0", "power (W)"]) assert.ok(text.includes(part), text);
  });
  await check("tables are sorted by value", async () => {
    const ours = () => page.$$eval("#claims-1 td:nth-child(3), #claims td:nth-child(3)",
      (cells) => cells.map((cell) => cell.textContent));
    await page.locator("th button", { hasText: "ours" }).click();
    await page.locator("th button", { hasText: "ours" }).click();
    assert.deepEqual(await ours(), ["2.5", "74.0 %", "15.1 %"]);
  });
  await check("figures are saved as drawings and as data", async () => {
    for (const [button, start] of [["SVG", "<svg "], ["CSV", "panel,series,x,y"]]) {
      const waiting = page.waitForEvent("download");
      await page.locator("#figure-7 .tools button", { hasText: button }).click();
      const text = readFileSync(await (await waiting).path(), "utf8");
      assert.ok(text.startsWith(start), text.slice(0, 60));
      assert.ok(!text.includes("var(--"), "a variable is left");
    }
  });
  await page.close();

  const adverse = await open("adverse", { viewport: { width: 360, height: 800 } });
  await check("whatever the names say, nothing runs and the page does not grow wide", async () => {
    assert.deepEqual(adverse.complaints, []);
    const width = await adverse.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(width, 360);
    assert.equal(await adverse.locator("figure").count(), 63);
    assert.equal(await adverse.title(), "</title><script>alert(1)</script>");
  });
  checks.report();
} finally {
  await browser.close();
}
