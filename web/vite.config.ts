import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";
import { licences } from "./vite.licences";

// One file without anything to load: docs/web.md.
export default defineConfig({
  plugins: [licences(), viteSingleFile()],
  build: { target: "es2022", reportCompressedSize: false },
});
