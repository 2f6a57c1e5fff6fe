import { defineConfig } from "vite";
import { licences } from "./vite.licences";

// The application: three files with fixed names beside the page for reports (docs/web.md).
export default defineConfig({
  plugins: [licences()],
  base: "./",
  build: {
    target: "es2022",
    outDir: "dist/app",
    reportCompressedSize: false,
    cssCodeSplit: false,
    modulePreload: false,
    rollupOptions: {
      input: "app.html",
      output: {
        entryFileNames: "app.js",
        assetFileNames: "app[extname]",
        inlineDynamicImports: true,
      },
    },
  },
});
