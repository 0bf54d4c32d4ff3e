import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const service = process.env.SLUICE_API_URL ?? 'http://127.0.0.1:8080';
/** These support the CSS as it is written: nesting, light-dark(). */
const browsers = ['chrome125', 'firefox128', 'safari17.5'];

// A single script, so that a page that stays open during an upgrade never requests a file that is gone.
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/console/',
  oxc: { jsx: { runtime: 'automatic' } },
  build: {
    target: browsers,
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: false } },
  },
  server: { proxy: { '/v1': service, '/api': service, '/media': service, '/docs': service } },
});
