// browser.mjs for scripts that open one address again and again.
import { Checks, newPage } from "./browser.mjs";

export { faintTexts, launch } from "./browser.mjs";

// `expected` are statuses that the test provokes: Chromium reports each as an error.
export async function openPage(browser, url, { expected = [], ...options } = {}) {
  const patterns = expected.map((status) => new RegExp(`status of ${status}`));
  const page = await newPage(browser, { origin: new URL(url).origin, expected: patterns, ...options });
  await page.goto(url);
  return page;
}

const checks = new Checks();
export const { check } = checks;
export const passedChecks = () => checks.passed;
