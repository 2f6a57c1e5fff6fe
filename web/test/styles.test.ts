// The styles of all views are one file: a class that two views use for different things breaks one of
// them, and a rule for shared parts alone changes every view.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const shared = ["style.css", "app/app.css", "charts/chart.css"];
// The report is a page of its own.
const folders = readdirSync("src", { withFileTypes: true }).filter((one) => one.isDirectory() && one.name !== "report");
const views = folders
  .flatMap(({ name }) => readdirSync(`src/${name}`).map((file) => `${name}/${file}`))
  .filter((file) => file.endsWith(".css") && !shared.includes(file));

function selectorsOf(file: string): string[] {
  const text = readFileSync(`src/${file}`, "utf8").replace(/\/\*[^]*?\*\//g, "");
  return [...text.matchAll(/([^{}]+)\{/g)]
    .map(([, head]) => head!.trim())
    .filter((head) => !head.startsWith("@") && head !== "to")
    .flatMap((head) => head.split(",").map((selector) => selector.trim()));
}

const classesOf = (selector: string): string[] => [...selector.matchAll(/\.([a-z][\w-]*)/gi)].map(([, name]) => name!);
const classesIn = (files: string[]) => new Set(files.flatMap(selectorsOf).flatMap(classesOf));

test("every rule of a view has a class that no other view and no shared part has", () => {
  const common = classesIn(shared);
  for (const view of views) {
    const foreign = classesIn(views.filter((other) => other !== view));
    for (const selector of selectorsOf(view)) {
      const names = classesOf(selector);
      if (names.length === 0) continue; // A rule for an element, which is about its looks everywhere.
      assert.ok(names.some((name) => !common.has(name) && !foreign.has(name)), `${view}: ${selector}`);
    }
  }
});
