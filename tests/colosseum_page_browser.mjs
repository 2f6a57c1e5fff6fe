// node colosseum_page_browser.mjs URL metered|trouble FOLDER: fights duels on the page, looks, and
// leaves screenshots in FOLDER.
import assert from "node:assert/strict";
import { check, faintTexts, launch, openPage, passedChecks } from "./browser_testing.mjs";

const [url, mode, folder] = process.argv.slice(2);
const browser = await launch();
const names = ["llama-3.1-8b", "qwen3-14b"];

const isWide = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
const shot = (page, name) => page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
const heading = (page) => page.locator(".decision h2");

async function untilVote(page) {
  await page.locator("button", { hasText: "A is better" }).waitFor({ timeout: 120_000 });
}
// Votes for the answer and says yes if that is asked. Returns whether it was.
async function voteAndJudge(page, text) {
  await page.locator("button", { hasText: text }).click();
  const asked = page.locator("button", { hasText: "No, not worth it" });
  const done = page.locator("button", { hasText: "Another duel" });
  await asked.or(done).first().waitFor();
  if (!(await asked.isVisible())) return false;
  for (const name of names)
    assert.ok(!(await page.locator(".answers").innerText()).includes(name), "a name before its time");
  await asked.click();
  await done.waitFor();
  return true;
}

async function fightWithPointer(colorScheme, viewport) {
  const page = await openPage(browser, url, { colorScheme, viewport });
  await page.locator("textarea").fill("Why is the sky blue?");
  await page.locator("button", { hasText: "Fight!" }).click();
  await page.locator(".answer .text").first().waitFor();
  return page;
}

async function metered() {
  for (const colorScheme of ["light", "dark"]) {
    const page = await fightWithPointer(colorScheme, { width: 1300, height: 900 });
    await check(`both answers arrive side by side (${colorScheme})`, async () => {
      await page.waitForFunction(() =>
        [...document.querySelectorAll(".answer .text")].every((one) => one.textContent.length > 20));
      await shot(page, `answering-${colorScheme}`);
      const [a, b] = await Promise.all([0, 1].map((i) => page.locator(".answer").nth(i).boundingBox()));
      assert.ok(b.x > a.x + a.width && a.y === b.y, JSON.stringify([a, b]));
    });
    await check(`nothing on the page tells who they are (${colorScheme})`, async () => {
      await untilVote(page);
      const text = await page.locator(".answers, .decision").allInnerTexts();
      for (const name of names) assert.ok(!text.join().includes(name));
      assert.ok(!/\d J\b/.test(text.join()));
      await shot(page, `voting-${colorScheme}`);
    });
    await check(`the vote reveals energies and names (${colorScheme})`, async () => {
      await voteAndJudge(page, "B is better");
      assert.match(await heading(page).innerText(), /^[AB] took .* (times as much|% more) energy|^Cannot tell/);
      const text = await page.locator(".answers").innerText();
      for (const name of names) assert.ok(text.includes(name), text);
      assert.match(await page.locator(".energies").innerText(), /± /);
      await shot(page, `revealed-${colorScheme}`);
    });
    await check(`text is legible and nothing complains (${colorScheme})`, async () => {
      assert.deepEqual(await page.evaluate(faintTexts), []);
      assert.deepEqual(page.complaints, []);
    });
    if (colorScheme === "light")
      await check("a changed vote is told beside the first", async () => {
        await page.locator(".change button", { hasText: "answer A" }).click();
        await page.locator(".decision p", { hasText: "both votes are kept" }).waitFor();
        assert.equal(await page.locator(".change").count(), 0);
      });
    else
      await check("a reload goes on with the same duel", async () => {
        const before = await heading(page).innerText();
        await page.reload();
        await page.locator("button", { hasText: "Another duel" }).waitFor();
        assert.equal(await heading(page).innerText(), before);
      });
    await page.close();
  }

  const page = await openPage(browser, url);
  await check("a duel with the keyboard alone", async () => {
    await page.locator("textarea").waitFor();
    for (let i = 0; i < 12 && (await page.evaluate(() => document.activeElement.tagName)) !== "TEXTAREA"; ++i)
      await page.keyboard.press("Tab");
    await page.keyboard.type("Why?");
    await page.keyboard.press("Enter");
    await untilVote(page);
    // The question has the focus, so the first answer is one step away.
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Which answer is better?");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "A is better");
    await page.keyboard.press("Enter");
    const asked = page.locator("button", { hasText: "Yes, worth it" });
    await asked.or(page.locator("button", { hasText: "Another duel" })).first().waitFor();
    if (await asked.isVisible()) {
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.locator("button", { hasText: "Another duel" }).waitFor();
    }
    const live = await page.locator(".answer .text").first().getAttribute("aria-live");
    assert.equal(live, "polite");
    assert.equal(await page.locator(".answer .text").first().getAttribute("aria-busy"), "false");
  });
  await check("the page does not jump while answers arrive", async () => {
    assert.ok((await page.evaluate(() => window.layoutShift)) < 0.1, String(await page.evaluate(() => window.layoutShift)));
  });
  await check("the leaderboard has both models, their joules and the frontier", async () => {
    await page.locator(".decision a", { hasText: "Leaderboard" }).click();
    await page.locator("#leaderboard tbody tr").nth(1).waitFor();
    const text = await page.locator("#leaderboard").innerText();
    for (const name of names) assert.ok(text.includes(name), text);
    assert.match(text, /\d+ \(\d+ to \d+\)/);
    assert.match(text, / J/);
    assert.ok((await page.locator("#rating-against-energy .dot, #rating-against-energy circle").count()) > 0);
    await shot(page, "leaderboard-light");
    assert.deepEqual(await page.evaluate(faintTexts), []);
    assert.deepEqual(page.complaints, []);
  });
  await page.close();

  const phone = await fightWithPointer("dark", { width: 360, height: 740 });
  await check("a phone shows everything within its width", async () => {
    await untilVote(phone);
    assert.ok(!(await isWide(phone)));
    await voteAndJudge(phone, "It is a tie");
    assert.ok(!(await isWide(phone)));
    await shot(phone, "revealed-phone");
    await phone.goto(`${url}/#/leaderboard`);
    await phone.locator("#leaderboard tbody tr").nth(1).waitFor();
    assert.ok(!(await isWide(phone)));
    await shot(phone, "leaderboard-phone");
    assert.deepEqual(phone.complaints, []);
  });
  await check("legible on the phone, too", async () => assert.deepEqual(await phone.evaluate(faintTexts), []));
  await phone.close();
}

async function trouble() {
  const page = await openPage(browser, url, { expected: [410, 422] });
  const fight = async (prompt) => {
    await page.locator("textarea").fill(prompt);
    await page.keyboard.press("Enter");
  };
  await check("without votes the leaderboard says so", async () => {
    await page.goto(`${url}/#/leaderboard`);
    await page.locator(".nothing", { hasText: "No duel was voted on yet" }).waitFor();
    await page.goto(`${url}/#/duel`);
  });
  await check("a duel that fails says so and names nobody", async () => {
    await page.locator("textarea").waitFor();
    await fight("first");
    await page.locator(".trouble", { hasText: "This duel has failed" }).waitFor();
    assert.ok(!/left-model|right-model/.test(await page.locator(".answers, .trouble").allInnerTexts().then(String)));
  });
  await check("answers are text, whatever they hold, and stay within the page", async () => {
    await fight("second");
    await untilVote(page);
    assert.match(await page.locator(".answer .text").first().innerText(), /<img src=x onerror/);
    assert.equal(await page.locator(".answer img").count(), 0);
    assert.ok(!(await isWide(page)));
    await page.locator("button", { hasText: "It is a tie" }).click();
    await page.locator("button", { hasText: "Another duel" }).waitFor();
    assert.match(await heading(page).innerText(), /not known/);
  });
  await check("a refused prompt is told in the server's words", async () => {
    await page.locator("button", { hasText: "Another duel" }).click();
    await fight("y".repeat(9000));
    await page.locator(".trouble", { hasText: "8192 are the most" }).waitFor();
    assert.deepEqual(page.complaints, []);
  });
  await page.close();
}

try {
  await (mode === "metered" ? metered() : trouble());
  console.log(`${passedChecks()} checks passed`);
} finally {
  await browser.close();
}
