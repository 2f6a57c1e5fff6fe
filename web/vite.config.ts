import { readFileSync } from "node:fs";
import { defineConfig } from "vite";
import type { Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// Code of others that the page contains comes with its licence.
function licences(): Plugin {
  const text = readFileSync(new URL("node_modules/preact/LICENSE", import.meta.url), "utf8");
  return {
    name: "licences",
    transformIndexHtml: (html) => html.replace("<head>", `<head>\n<!-- Preact\n\n${text}-->`),
  };
}

// One file without anything to load: docs/web.md.
export default defineConfig({
  plugins: [licences(), viteSingleFile()],
  build: { target: "es2022", reportCompressedSize: false },
});
