// npm run pictures: the pictures in the README and the tour, of the real service: a canary in the console and on the terminal.
// npm run pictures -- terminal: the command line at 80 and 140 columns, to look at (scripts/pictures/terminal.ts).
// npm run pictures -- console: every page of the console in every state, to look at (scripts/pictures/console.ts).
import { mkdirSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { signIn } from '../test/console/scene.ts';
import { startApp } from '../test/helpers/app.ts';
import { buildConsole, launchBrowser } from '../test/helpers/browser.ts';
import { Shop } from '../test/helpers/shop.ts';
import { until } from '../test/helpers/wait.ts';
import { takeConsole } from './pictures/console.ts';
import { pageOf, screenOf } from './pictures/screen.ts';
import { onTerminal, prompt, takeTerminals } from './pictures/terminal.ts';

const folder = 'docs/pictures';
const columns = 96;
/** The charts begin some time before the canary. */
const visitedBeforeMs = 90_000;
const watchedMs = 75_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function takeTerminal(browser: Browser, command: string, output: string): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 1200, height: 600 }, deviceScaleFactor: 1.5 });
  await page.setContent(pageOf(prompt(command) + screenOf(output)));
  await page.locator('pre').screenshot({ path: `${folder}/terminal.png` });
}

async function takeReadme(): Promise<void> {
  buildConsole();
  mkdirSync(folder, { recursive: true });
  const t = await startApp({ tokenLimit: 1_000_000 });
  const browser = await launchBrowser();
  try {
    const shop = await Shop.open(t.url, { canary: { bake_s: 120, max_error_rate: 0.2 }, replicas: 2 });
    await shop.api('PATCH', '', { name: 'Shop', slug: 'shop' });
    await shop.set({ variables: { STANDIN_LATENCY_MS: '20', STANDIN_ERROR_RATE: '0.01' } });
    await shop.released('registry.example/shop:1.3');
    const visitors = setInterval(() => void shop.visit().catch(() => {}), 40);
    await pause(visitedBeforeMs);
    const args = ['deploy', 'registry.example/shop:1.4', '--canary', '25'];
    const terminal = onTerminal(t.url, args, { columns });
    const id = await until(
      'the deployment',
      async () => (await shop.environment()).in_progress_deployment ?? undefined,
    );
    await shop.reaches(id, 'canary');
    const page = await browser.newPage({ viewport: { width: 1160, height: 720 }, deviceScaleFactor: 1.25 });
    await signIn(page, t.url, `/projects/${shop.project}/deployments/${id}`);
    await pause(watchedMs);
    await page.screenshot({ path: `${folder}/console.png` });
    await takeTerminal(browser, args.join(' '), terminal.output());
    clearInterval(visitors);
    terminal.stop();
  } finally {
    await browser.close();
    await t.stop();
  }
}

const [what, ...words] = process.argv.slice(2);
const takes: Record<string, (words: string[]) => Promise<void>> = { console: takeConsole, terminal: takeTerminals };
await (takes[what ?? ''] ?? takeReadme)(words);
process.exit(0);
