// The browser of tests of pages, and what all of them look for. Chromium and playwright-core come from
// the environment: browser_testing.py.
import { pathToFileURL } from "node:url";

const { chromium } = await import(pathToFileURL(process.env.PLAYWRIGHT).href);

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update",
      "--disable-sync", "--no-first-run"],
  });
}

// A page that notes its complaints: messages of the console, scripts that run although they are data,
// and requests to other hosts; window.layoutShift says how much of it jumped. `expected` are patterns
// of messages that the test provokes.
export async function newPage(browser, { origin = "", expected = [], ...options } = {}) {
  const page = await browser.newPage({ viewport: { width: 1300, height: 900 }, ...options });
  page.setDefaultTimeout(120_000); // A busy machine is slow.
  page.complaints = [];
  const complain = (text) => expected.some((pattern) => pattern.test(text)) || page.complaints.push(text);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complain(`${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => complain(error.message));
  page.on("dialog", (dialog) => complain(`a script ran: ${dialog.message()}`));
  page.on("request", (request) => {
    const url = request.url();
    if (/^(http|ws)/.test(url) && !(origin && url.startsWith(`${origin}/`))) complain(url);
  });
  await page.addInitScript(() => {
    window.layoutShift = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.layoutShift += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
  });
  return page;
}

// Counts what was checked; an error says which sentence does not hold.
export class Checks {
  passed = 0;

  check = async (sentence, body) => {
    try {
      await body();
      ++this.passed;
    } catch (error) {
      error.message = `${sentence}: ${error.message}`;
      throw error;
    }
  };

  report() {
    console.log(`${this.passed} checks passed`);
  }
}

// Runs in the page. Texts below `root` whose contrast to their ground is below the 4.5 that WCAG wants,
// or that are smaller than 11 pixels.
export function faintTexts(root = "body") {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
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
  // Names on coloured boxes have colours of their own, which scale and span tests look at.
  const left = ".skip, .spoken, .cells, .span-name, script, style, option, noscript, :disabled";
  const faint = [];
  const walker = document.createTreeWalker(document.querySelector(root), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest(left) || !element.getClientRects().length) continue;
    const style = getComputedStyle(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [luminance(colour), luminance(ground(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) faint.push(`${node.textContent} ${colour} ${contrast.toFixed(2)}`);
    if (parseFloat(style.fontSize) < 11 && !element.matches("th i")) faint.push(`${node.textContent} is small`);
  }
  return faint;
}
