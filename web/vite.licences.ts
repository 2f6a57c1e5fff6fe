import { readFileSync } from "node:fs";
import type { Plugin } from "vite";

// Code of others that a page contains comes with its licence.
export function licences(): Plugin {
  const text = readFileSync(new URL("node_modules/preact/LICENSE", import.meta.url), "utf8");
  return {
    name: "licences",
    transformIndexHtml: (html) => html.replace("<head>", `<head>\n<!-- Preact\n\n${text}-->`),
  };
}
