// Shared by the tests of the application in Debian's Chromium.
import { pathToFileURL } from "node:url";

const { chromium } = await import(pathToFileURL(process.env.PLAYWRIGHT).href);

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update",
      "--disable-sync", "--no-first-run"],
  });
}

// A page that remembers what the console and the policy said, requests to other hosts, and how much
// of it jumped. `expected` are statuses that the test provokes: Chromium reports each as an error.
export async function openPage(browser, url, options = {}) {
  const { expected = [], ...rest } = options;
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 }, ...rest });
  page.complaints = [];
  page.on("console", (message) => {
    if (!["error", "warning"].includes(message.type())) return;
    if (!expected.some((status) => message.text().includes(`status of ${status}`)))
      page.complaints.push(message.text());
  });
  page.on("pageerror", (error) => page.complaints.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin) && !request.url().startsWith("data:"))
      page.complaints.push(request.url());
  });
  await page.addInitScript(() => {
    window.layoutShift = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.layoutShift += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
  });
  await page.goto(url);
  return page;
}

// Runs in the page. Texts whose contrast to their ground is below the 4.5 that WCAG wants, or that
// are smaller than 11 pixels.
export function faintTexts() {
  const channels = (colour) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (channels(colour)[3] === 255) return colour;
    }
    return getComputedStyle(document.documentElement).backgroundColor;
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest(".skip, .spoken, script, style, option, :disabled")) continue;
    const style = getComputedStyle(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [luminance(colour), luminance(ground(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) faint.push(`${node.textContent} ${colour} ${contrast.toFixed(2)}`);
    if (parseFloat(style.fontSize) < 11) faint.push(`${node.textContent} is small`);
  }
  return faint;
}

let passed = 0;
export async function check(sentence, body) {
  try {
    await body();
    ++passed;
  } catch (error) {
    error.message = `${sentence}: ${error.message}`;
    throw error;
  }
}
export const passedChecks = () => passed;
