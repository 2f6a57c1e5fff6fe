import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// One file without anything to load: docs/web.md.
export default defineConfig({
  plugins: [viteSingleFile()],
  build: { target: "es2022", reportCompressedSize: false },
});
