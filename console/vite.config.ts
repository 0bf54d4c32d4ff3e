import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const service = process.env.SLUICE_API_URL ?? 'http://127.0.0.1:8080';
/** What nests light-dark() and the rest as it is written. */
const browsers = ['chrome125', 'firefox128', 'safari17.5'];

// One script on purpose: a page that stays open while the service is upgraded never asks for a file that is gone.
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
