// How the page is built. The names of built files are fixed: the server's Content-Security-Policy
// names them, and two builds of the same sources are equal byte for byte.
import { defineConfig } from "vite";

export default defineConfig({
  base: "/",
  build: {
    outDir: "../src/strongroom/servers/console/built",
    emptyOutDir: true,
    assetsInlineLimit: 0, // a data: URL would not pass the policy
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    target: "es2022",
    rolldownOptions: {
      output: {
        entryFileNames: "assets/console.js",
        assetFileNames: "assets/console[extname]",
        codeSplitting: false,
      },
    },
  },
  test: { environment: "happy-dom", testTimeout: 60_000, include: ["tests/**/*.test.{ts,tsx}"] },
});
