// A real Chromium, and the console as it is built from these sources.
import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { onPath } from '../../scripts/packages.ts';

const flags = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
];

/** The first is what the suite installs; a desktop's takes twice the processor time. */
const program = ['chromium-headless-shell', 'chromium'].find(onPath);
export const noBrowser = program ? false : 'chromium is not installed';

export const launchBrowser = (more: string[] = []): Promise<Browser> =>
  chromium.launch({ executablePath: `/usr/bin/${program}`, args: [...flags, ...more] });

const root = fileURLToPath(new URL('../../', import.meta.url));
const output = `${root}test/output`;

/** What the install built may be older than what is to be tested. */
export function buildConsole(): void {
  const changedAt = (file: string) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sources = globSync([`${root}console/{index.html,vite.config.ts,src/**/*,public/*}`, `${root}src/client/*.ts`]);
  if (Math.max(...sources.map(changedAt)) < changedAt(`${root}console/dist/index.html`)) return;
  execFileSync(process.execPath, [`${root}scripts/build.ts`, 'console'], { stdio: 'inherit' });
}

export interface Watched {
  page: Page;
  /** What went wrong on the page: errors, refusals of the content policy, answers of 400 and above. */
  wrong: string[];
}

export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  });
  const page = await context.newPage();
  return { page, wrong: watch(page) };
}

/** Loads it again where the network of the machine changed, and collects what goes wrong on it. */
export function watch(page: Page): string[] {
  retryChangedNetwork(page);
  const wrong: string[] = [];
  page.on('pageerror', (error) => wrong.push(`page: ${error.message}`));
  page.on('console', (message) => {
    // Other tests add and remove network interfaces meanwhile; the page asks again.
    const isOfOthers = message.text().includes('ERR_NETWORK_CHANGED');
    if (message.type() === 'error' && !isOfOthers) wrong.push(`console: ${message.text()}`);
  });
  page.on('response', (response) => response.status() >= 400 && wrong.push(`${response.status()} ${response.url()}`));
  return wrong;
}

/**
 * Chromium gives up what it loads when an interface of the machine comes or goes, as those of containers do: the page itself,
 * or a script without which it stays empty.
 */
function retryChangedNetwork(page: Page): void {
  const isChange = (text: string | undefined) => text?.includes('ERR_NETWORK_CHANGED') === true;
  // Chromium's own page about the change may still be on its way when the page is opened again, or load that page by itself.
  const isPageAboutIt = (text: string, url: string) =>
    ['chrome-error:', `${url}"`].some((other) => text.includes(`interrupted by another navigation to "${other}`));
  let lost = 0;
  page.on('requestfailed', (request) => {
    if (['script', 'stylesheet'].includes(request.resourceType()) && isChange(request.failure()?.errorText)) lost++;
  });
  const goto = page.goto.bind(page);
  page.goto = async (...args) => {
    for (;;) {
      const lostBefore = lost;
      try {
        const response = await goto(...args);
        if (lost === lostBefore) return response;
      } catch (error) {
        if (!isChange(String(error)) && !isPageAboutIt(String(error), args[0])) throw error;
      }
    }
  };
}

/** For people to look at, where SLUICE_TEST_PICTURES=1 asks for them: to take them costs a sixth of what a page does. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  if (process.env.SLUICE_TEST_PICTURES !== '1') return;
  mkdirSync(output, { recursive: true });
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: `${output}/${name}.png`, fullPage: true });
}
