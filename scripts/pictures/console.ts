// npm run pictures -- console [word …]: every page of the console of the real service, for people to look at: wide and narrow,
// light and dark, of an empty service, of one with three projects (an alert fires, a canary waits, a deployment has
// failed, an environment is down) and of one with 1,000 projects and 10,000 deployments. With words, only pages with one
// of them in their names. Written to test/output/pictures, with a page that shows all of them side by side.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { addProjects, makeScene, makeTroubles, type Pages, pagesOf, signIn } from '../../test/console/scene.ts';
import { startApp, type TestApp } from '../../test/helpers/app.ts';
import { buildConsole, launchBrowser, openPage } from '../../test/helpers/browser.ts';
import { Shop } from '../../test/helpers/shop.ts';

const folder = 'test/output/pictures';
const sizes = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
] as const;
const schemes = ['light', 'dark'] as const;

const emptyPages: Pages = {
  projects: ['/projects', 'Deploy something in under a minute'],
  deployments: ['/deployments', 'No deployments'],
  alerts: ['/alerts', 'Nothing is firing.'],
  domains: ['/domains', 'No domains'],
  webhooks: ['/webhooks', 'No webhooks'],
  tokens: ['/tokens', 'New token'],
  registries: ['/registries', 'No registry logins'],
  audit: ['/audit', 'Audit log'],
};

const manyPages: Pages = {
  projects: ['/projects', 'Project 0001'],
  found: ['/projects?search=0042', 'Project 0042'],
  deployments: ['/deployments', 'deployed in'],
  project: ['/projects/prj_01000000000000000000000042', 'Recent deployments'],
};

interface Taken {
  name: string;
  files: string[];
}

async function takeAll(page: Page, url: string, state: string, pages: Pages, words: string[]): Promise<Taken[]> {
  const taken: Taken[] = [];
  for (const [name, [path, text]] of Object.entries(pages)) {
    const title = `${state}-${name}`;
    if (words.length > 0 && !words.some((word) => title.includes(word))) continue;
    await page.setViewportSize(sizes[0]);
    await page.goto(`${url}/console${path}`);
    await page.getByText(text).first().waitFor();
    await page.waitForFunction(() => document.querySelector('main .loading') === null);
    taken.push({ name: title, files: await take(page, title) });
  }
  return taken;
}

async function take(page: Page, title: string): Promise<string[]> {
  const files: string[] = [];
  for (const size of sizes) {
    for (const scheme of schemes) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
      await page.setViewportSize(size);
      const file = `${title}-${size.width}-${scheme}.png`;
      await page.screenshot({ path: `${folder}/${file}`, fullPage: true });
      files.push(file);
    }
  }
  return files;
}

interface State {
  name: string;
  prepare(t: TestApp): Promise<Pages>;
}

const states: State[] = [
  { name: 'empty', prepare: async () => emptyPages },
  {
    name: 'three',
    async prepare(t) {
      const scene = await makeScene(t);
      const troubles = await makeTroubles(t);
      return { ...pagesOf(scene), ...troubles.pages };
    },
  },
  {
    name: 'many',
    async prepare(t) {
      const shop = await Shop.open(t.url);
      await shop.api('PATCH', '', { name: 'Corner shop' });
      await shop.released('registry.example/shop:1.3');
      await addProjects(t, 999, 10);
      return manyPages;
    },
  },
];

async function takeState(browser: Browser, { name, prepare }: State, words: string[]): Promise<Taken[]> {
  const t = await startApp({ tokenLimit: 1_000_000 });
  try {
    const pages = await prepare(t);
    const { page } = await openPage(browser);
    await page.goto(`${t.url}/console`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    const first =
      name === 'empty' && words.length === 0 ? [{ name: 'sign-in', files: await take(page, 'sign-in') }] : [];
    await signIn(page, t.url);
    await page.getByRole('heading', { name: 'Projects' }).waitFor();
    return [...first, ...(await takeAll(page, t.url, name, pages, words))];
  } finally {
    await t.stop();
  }
}

const sheet = (taken: Taken[]) => `<!doctype html><meta charset="utf-8"><title>The console, page by page</title>
<style>body{font:14px system-ui;background:#888}section{display:flex;gap:8px;align-items:start}img{height:520px;max-width:40vw;object-fit:cover;object-position:top}</style>
${taken.map(({ name, files }) => `<h2>${name}</h2><section>${files.map((file) => `<a href="${file}"><img src="${file}" alt=""></a>`).join('')}</section>`).join('\n')}
`;

export async function takeConsole(words: string[]): Promise<void> {
  buildConsole();
  if (words.length === 0) rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const browser = await launchBrowser();
  const taken: Taken[] = [];
  try {
    for (const state of states) taken.push(...(await takeState(browser, state, words)));
  } finally {
    await browser.close();
  }
  if (words.length === 0) writeFileSync(`${folder}/index.html`, sheet(taken));
  console.log(
    `${taken.reduce((sum, { files }) => sum + files.length, 0)} pictures of ${taken.length} pages in ${folder}`,
  );
}
