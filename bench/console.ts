// npm run bench -- console [projects | frames | shifts]: what the console costs in a real browser. With 1,001 projects and 10,000
// deployments: how long from opening a page until its first row is there, beside a page that reads nothing; how many
// frames are dropped while a canary is live, beside a page on which nothing changes; and how far what is on a page jumps
// while its data arrives.
import type { Browser, Page } from 'playwright-core';
import { addProjects, signIn } from '../test/console/scene.ts';
import { startApp } from '../test/helpers/app.ts';
import { buildConsole, launchBrowser, openPage } from '../test/helpers/browser.ts';
import { Shop } from '../test/helpers/shop.ts';

const rounds = 7;
const watchedMs = 20_000;
/** A frame that comes later than this was dropped: one and a half of sixty a second. */
const lateMs = 25;
/** After that nothing more of a page arrives. */
const settledMs = 2000;

const parts = process.argv.slice(2).filter((word) => ['projects', 'frames', 'shifts'].includes(word));
const wants = (part: string) => parts.length === 0 || parts.includes(part);

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** From the navigation until the text is in the page, by the page's own clock. */
async function firstPaintMs(page: Page, url: string, text: string): Promise<number> {
  await page.goto(url, { waitUntil: 'commit' });
  await page.getByText(text).first().waitFor();
  return page.evaluate(() => performance.now());
}

async function measureProjects(browser: Browser): Promise<void> {
  const t = await startApp({ tokenLimit: 1_000_000 });
  const shop = await Shop.open(t.url);
  await shop.released('registry.example/shop:1');
  await addProjects(t, 1000, 10);
  const { page } = await openPage(browser);
  await signIn(page, t.url);
  await page.getByText('1,001 projects').waitFor();
  const times: Record<string, number[]> = { projects: [], deployments: [], session: [] };
  for (let round = 0; round < rounds; round++) {
    times.projects!.push(await firstPaintMs(page, `${t.url}/console/projects`, 'Project 0001'));
    times.deployments!.push(await firstPaintMs(page, `${t.url}/console/deployments`, 'deployed in'));
    times.session!.push(await firstPaintMs(page, `${t.url}/console/session`, 'Scopes'));
  }
  const [projects, deployments, session] = [times.projects!, times.deployments!, times.session!].map(median);
  console.log(
    `first rows of 1,001 projects: ${Math.round(projects!)} ms, ${(projects! / session!).toFixed(2)} of a page without a list`,
  );
  console.log(
    `first rows of 10,000 deployments: ${Math.round(deployments!)} ms, ${(deployments! / session!).toFixed(2)} of it`,
  );
  console.log(`the page without a list: ${Math.round(session!)} ms`);
  await page.context().close();
  await t.stop();
}

interface Frames {
  seen: number;
  dropped: number;
  longestMs: number;
}

const watchFrames = (page: Page): Promise<Frames> =>
  page.evaluate(
    ({ watchedMs, lateMs }) =>
      new Promise<Frames>((resolve) => {
        const frames = { seen: 0, dropped: 0, longestMs: 0 };
        const startedAt = performance.now();
        let last = startedAt;
        const next = (now: number) => {
          const gap = now - last;
          last = now;
          frames.seen++;
          if (gap > lateMs) frames.dropped += Math.round((gap * 60) / 1000) - 1;
          frames.longestMs = Math.max(frames.longestMs, gap);
          if (now - startedAt < watchedMs) requestAnimationFrame(next);
          else resolve(frames);
        };
        requestAnimationFrame(next);
      }),
    { watchedMs, lateMs },
  );

/** The sum of all layout shifts of a page, as browsers count them: below 0.1 is what they call good. */
async function shiftOf(page: Page, url: string, text: string): Promise<number> {
  await page.goto(url);
  await page.getByText(text).first().waitFor();
  return page.evaluate(
    (settledMs) =>
      new Promise<number>((resolve) => {
        let sum = 0;
        const add = (entries: PerformanceEntryList) => {
          for (const entry of entries) sum += (entry as PerformanceEntry & { value: number }).value;
        };
        const observer = new PerformanceObserver((list) => add(list.getEntries()));
        observer.observe({ type: 'layout-shift', buffered: true });
        setTimeout(() => {
          add(observer.takeRecords());
          resolve(sum);
        }, settledMs);
      }),
    settledMs,
  );
}

async function measureShifts(browser: Browser): Promise<void> {
  const t = await startApp({ tokenLimit: 1_000_000 });
  const shop = await Shop.open(t.url, { canary: { bake_s: 3600, advance: 'manual', max_error_rate: 1 } });
  await shop.released('registry.example/shop:1');
  const { id } = await shop.deploy('registry.example/shop:2', { strategy: 'canary', canary_percent: 25 });
  await shop.reaches(id, 'canary');
  await addProjects(t, 1000);
  const load = shop.load(2);
  const at = `${t.url}/console/projects`;
  const pages = {
    projects: [at, 'Project 0001'],
    'a project': [`${at}/${shop.project}`, 'Activity'],
    'an environment with a live canary': [`${at}/${shop.project}/environments/production`, 'p95 latency'],
    'its deployment': [`${at}/${shop.project}/deployments/${id}`, 'p95 latency'],
    'its settings': [`${at}/${shop.project}/environments/production/settings`, 'Canary analysis'],
    deployments: [`${t.url}/console/deployments`, 'deployed in'],
    'audit log': [`${t.url}/console/audit`, 'created a deployment'],
  } satisfies Record<string, [url: string, text: string]>;
  for (const viewport of [
    { width: 1440, height: 900 },
    { width: 390, height: 844 },
  ]) {
    const { page } = await openPage(browser, { viewport });
    await signIn(page, t.url);
    await page.getByText('1,001 projects').waitFor();
    for (const [name, [url, text]] of Object.entries(pages)) {
      console.log(`layout shift of ${name} at ${viewport.width} px: ${(await shiftOf(page, url, text)).toFixed(3)}`);
    }
    await page.context().close();
  }
  await load.stop();
  await t.stop();
}

async function measureFrames(browser: Browser): Promise<void> {
  const t = await startApp({ tokenLimit: 1_000_000 });
  const shop = await Shop.open(t.url, { canary: { bake_s: 3600, advance: 'manual', max_error_rate: 1 } });
  await shop.released('registry.example/shop:1');
  const { id } = await shop.deploy('registry.example/shop:2', { strategy: 'canary', canary_percent: 25 });
  await shop.reaches(id, 'canary');
  const load = shop.load(2);
  const tell = (what: string, { seen, dropped, longestMs }: Frames) =>
    console.log(
      `${what}: ${dropped} of ${seen + dropped} frames dropped (${((dropped / (seen + dropped)) * 100).toFixed(1)} %), longest ${Math.round(longestMs)} ms`,
    );
  const { page } = await openPage(browser);
  await signIn(page, t.url, `/projects/${shop.project}/environments/production`);
  await page.getByText('Promote r2').first().waitFor();
  for (let round = 0; round < 3; round++) {
    await page.goto(`${t.url}/console/regions`);
    await page.getByText('stand-in').first().waitFor();
    tell('a page on which nothing changes', await watchFrames(page));
    await page.goto(`${t.url}/console/projects/${shop.project}/environments/production`);
    await page.getByText('Promote r2').first().waitFor();
    tell('an environment with a live canary', await watchFrames(page));
  }
  await load.stop();
  await page.context().close();
  await t.stop();
}

buildConsole();
const browser = await launchBrowser();
try {
  if (wants('projects')) await measureProjects(browser);
  if (wants('frames')) await measureFrames(browser);
  if (wants('shifts')) await measureShifts(browser);
} finally {
  await browser.close();
}
process.exit(0);
