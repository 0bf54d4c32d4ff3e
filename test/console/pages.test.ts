// Every page of the console: no accessibility violation in either colour scheme, no horizontal scrolling on a small
// screen, no violation of the content security policy, and a screenshot to look at.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { AxeResults, RunOptions } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { startApp, type TestApp } from '../helpers/app.ts';
import { buildConsole, keepPicture, launchBrowser, noBrowser, openPage, type Watched } from '../helpers/browser.ts';
import { makeScene, pagesOf, type Scene, signIn } from './scene.ts';

const axeSource = readFileSync(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const wide = { width: 1440, height: 900 };
const narrow = { width: 390, height: 844 };

async function violationsOn(page: Page): Promise<string[]> {
  if (!(await page.evaluate('typeof axe === "object"'))) await page.evaluate(axeSource);
  const { violations, passes } = await page.evaluate(
    (options) => (window as unknown as { axe: { run(o: RunOptions): Promise<AxeResults> } }).axe.run(options),
    { resultTypes: ['violations'] } as RunOptions,
  );
  assert.ok(
    passes.some(({ id }) => id === 'color-contrast'),
    'contrast was checked',
  );
  return violations.map(
    ({ id, impact, nodes }) =>
      `${id} (${impact}): ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
  );
}

/** By how many pixels the page is wider than the screen. */
const overhang = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

/** Light on a wide screen, dark on a narrow one. */
async function inspect(page: Page, name: string): Promise<void> {
  for (const [scheme, size] of [
    ['light', wide],
    ['dark', narrow],
  ] as const) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    await page.setViewportSize(size);
    const what = `${name}-${size.width}-${scheme}`;
    await keepPicture(page, what);
    assert.equal(await overhang(page), 0, `${what} scrolls horizontally`);
    assert.deepEqual(await violationsOn(page), [], what);
  }
}

/** A catalogue of one stream, without its media files. */
function publishCatalogue(dataDir: string): string {
  const folder = join(dataDir, 'catalogue');
  mkdirSync(join(folder, 'api'), { recursive: true });
  const film = { id: 'film', title: 'A film', fps: 25, duration_s: 61.4, hls: '/media/film/hls/index.m3u8' };
  const document = {
    version: 2,
    updated: '2026-11-15',
    renditions: [],
    streams: [{ ...film, progressive: { '720p': '/media/film/720p.mp4' } }],
  };
  writeFileSync(join(folder, 'api/streams.json'), JSON.stringify(document));
  return folder;
}

describe('console pages', { skip: noBrowser }, () => {
  let t: TestApp;
  let browser: Browser;
  let scene: Scene;
  let watched: Watched;
  before(async () => {
    buildConsole();
    t = await startApp({ tokenLimit: 1_000_000 });
    publishCatalogue(t.dataDir);
    scene = await makeScene(t);
    browser = await launchBrowser();
    watched = await openPage(browser);
  });
  after(async () => {
    await browser?.close();
    await scene?.close();
    await t.stop();
  });

  test('sign-in', async () => {
    await watched.page.goto(`${t.url}/console`);
    await watched.page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await inspect(watched.page, 'sign-in');
    await signIn(watched.page, t.url);
    await watched.page.getByRole('heading', { name: 'Projects' }).waitFor();
  });

  test('every page after signing in', async (c) => {
    const { page, wrong } = watched;
    for (const [name, [path, text]] of Object.entries(pagesOf(scene))) {
      await c.test(name, async () => {
        await page.setViewportSize(wide);
        await page.goto(`${t.url}/console${path}`);
        await page.getByText(text).first().waitFor();
        await page.waitForFunction(() => document.querySelector('main .loading') === null);
        await inspect(page, name);
      });
    }
    assert.deepEqual(wrong, []);
  });

  test('menu, palette, help, dialogs, a new secret', async () => {
    const { page } = watched;
    await page.setViewportSize(narrow);
    await page.goto(`${t.url}/console/tokens`);
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'Webhooks' }).waitFor();
    await inspect(page, 'menu');
    await page.setViewportSize(wide);
    await page.keyboard.press('ControlOrMeta+k');
    await page.keyboard.type('corner');
    await page.getByRole('option', { name: 'Environment Corner shop / production' }).waitFor();
    await inspect(page, 'palette');
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await inspect(page, 'help');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').waitFor();
    await inspect(page, 'dialog');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'New token' }).click();
    await page.getByLabel('Name').fill('ci');
    await page.getByLabel('deployments:write').check();
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.getByLabel('Token ci').waitFor();
    await inspect(page, 'secret');
    await page.goto(`${t.url}/console/projects/${scene.shop.project}/alerts`);
    await page.getByRole('button', { name: 'Edit visitors in production' }).click();
    await inspect(page, 'rule');
  });

  test('empty pages', async () => {
    const { page } = watched;
    const { body } = await t.call('POST', '/v1/projects', { body: { name: 'Nothing yet' } });
    for (const [place, text] of [
      ['', 'No activity yet.'],
      ['/deployments', 'No deployments.'],
      ['/domains', 'No domains yet.'],
      ['/environments/production', 'Nothing is deployed here yet.'],
      ['/environments/production/revisions', 'No revisions yet.'],
    ] as const) {
      await page.setViewportSize(wide);
      await page.goto(`${t.url}/console/projects/${body.id}${place}`);
      await page.getByText(text).first().waitFor();
      await inspect(page, `empty${place.replaceAll('/', '-')}`);
    }
  });

  test('by keyboard alone: skip link, form, dialog', async () => {
    const { page } = watched;
    await page.setViewportSize(wide);
    await page.goto(`${t.url}/console/projects/${scene.shop.project}/deployments/${scene.canary.id}`);
    await page.getByRole('button', { name: 'Abort' }).waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to content');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
    await page.getByRole('button', { name: 'Abort' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Cancel');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Abort');
    assert.equal((await scene.shop.deployment(scene.canary.id)).state, 'canary');
  });
});
