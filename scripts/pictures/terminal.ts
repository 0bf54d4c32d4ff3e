// npm run pictures -- terminal: what the command line shows on terminals of 80 and 140 columns, for people to look at: a first
// deployment, a canary under way and promoted, one that is undone, one that never becomes healthy, and what people ask for
// every day. Written to test/output/pictures/terminal-80.png and terminal-140.png.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Browser } from 'playwright-core';
import { adminToken, startApp, type TestApp } from '../../test/helpers/app.ts';
import { launchBrowser } from '../../test/helpers/browser.ts';
import { Shop } from '../../test/helpers/shop.ts';
import { until } from '../../test/helpers/wait.ts';
import { pageOf, screenOf } from './screen.ts';

const folder = 'test/output/pictures';
const widths = [80, 140];

export interface OnTerminal {
  output(): string;
  ended: Promise<void>;
  stop(): void;
}

/** The command line on a terminal of its own. */
export function onTerminal(
  url: string,
  args: string[],
  { columns, cwd = '.', env = {} }: { columns: number; cwd?: string; env?: Record<string, string> },
): OnTerminal {
  const words = ['node', resolve('bin/sluice.js'), ...args].map((word) => `'${word}'`).join(' ');
  const child = spawn('script', ['-qfec', `stty cols ${columns} rows 40; ${words}`, '/dev/null'], {
    cwd,
    env: { ...process.env, SLUICE_API_URL: url, SLUICE_TOKEN: adminToken, TERM: 'xterm-256color', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  const ended = new Promise<void>((done) => void child.once('close', () => done()));
  return { output: () => output.replaceAll('\r\n', '\n'), ended, stop: () => void child.kill('SIGTERM') };
}

export const prompt = (command: string): string =>
  `<span class="dim">$</span> <span class="bold">sluice${command && ` ${command}`}</span>\n`;

const asked = [
  '',
  'status',
  'deployments',
  'deployments show r3',
  'revisions',
  'diff r1 r2',
  'metrics',
  'logs',
  'env show',
  'audit --limit 5',
  'events --limit 5',
  'deploy registry.example/nothing:1 -p shop-that-is-not-there',
  'rollout',
  'help deploy',
  '--help',
];

async function screensOf(t: TestApp, columns: number): Promise<string> {
  const cwd = mkdtempSync(join(tmpdir(), 'sluice-pictures-'));
  const shop = await Shop.open(t.url, {
    canary: { bake_s: 12, steps: [50], max_error_rate: 0.05 },
    replicas: 2,
    health_check: { start_timeout_s: 8 },
  });
  const slug = `shop-${columns}`;
  await shop.api('PATCH', '', { name: 'Shop', slug });
  const screens: string[] = [];
  const run = async (command: string, live?: RegExp) => {
    const words = command.split(' ').filter((word) => word !== '');
    const terminal = onTerminal(t.url, words, { columns, cwd, env: { SLUICE_PROJECT: slug } });
    if (live) {
      await until(`${live}`, () => live.test(terminal.output()), 120_000).catch((error) => {
        throw new Error(terminal.output().slice(-3000), { cause: error });
      });
      screens.push(`${prompt(command)}${screenOf(terminal.output())}\n<span class="dim">… and then</span>`);
    }
    await terminal.ended;
    screens.push(`${live ? '' : prompt(command)}${screenOf(terminal.output())}`);
  };
  await run('deploy registry.example/shop:1.3');
  const visitors = setInterval(() => void shop.visit().catch(() => {}), 40);
  await run('deploy registry.example/shop:1.4 --canary 10', /50 %[^▏]*▏ 0:0[4-7] left/);
  await shop.set({ variables: { STANDIN_ERROR_RATE: '0.4' } });
  await run('deploy registry.example/shop:1.5 --canary 25');
  await shop.set({ variables: { STANDIN_ERROR_RATE: null, STANDIN_UNHEALTHY: '1' } });
  await run('deploy registry.example/shop:1.6', /healthy, [3-7] s/);
  await shop.set({ variables: { STANDIN_UNHEALTHY: null } });
  await run('rollback r1 --yes');
  for (const command of asked) await run(command);
  clearInterval(visitors);
  rmSync(cwd, { recursive: true });
  return screens.join('\n\n');
}

export async function takeTerminals(): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const t = await startApp({ tokenLimit: 1_000_000 });
  const browser: Browser = await launchBrowser();
  try {
    for (const columns of widths) {
      const page = await browser.newPage({ viewport: { width: 1500, height: 600 } });
      await page.setContent(pageOf(await screensOf(t, columns), columns));
      await page.locator('pre').screenshot({ path: `${folder}/terminal-${columns}.png` });
    }
  } finally {
    await browser.close();
    await t.stop();
  }
}
