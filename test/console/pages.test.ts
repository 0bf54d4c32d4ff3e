// Every page of the console: no accessibility violation in either colour scheme, no horizontal scrolling on a small
// screen, no violation of the content security policy, and a screenshot to look at.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { AxeResults, RunOptions } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { createOrigin } from '../../src/catalogue/origin.ts';
import { galleryFiles } from '../../src/catalogue/site-texts.ts';
import { startApp, type TestApp } from '../helpers/app.ts';
import { buildConsole, keepPicture, launchBrowser, noBrowser, openPage, type Watched } from '../helpers/browser.ts';
import { addProjects, makeScene, makeTroubles, pagesOf, type Scene, signIn, type Troubles } from './scene.ts';

const axeSource = readFileSync(new URL('../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const wide = { width: 1440, height: 900 };
const narrow = { width: 390, height: 844 };

async function violationsOn(page: Page): Promise<string[]> {
  if (!(await page.evaluate('typeof axe === "object"'))) await page.evaluate(axeSource);
  const { violations, passes } = await page.evaluate(
    (options) => (window as unknown as { axe: { run(o: RunOptions): Promise<AxeResults> } }).axe.run(options),
    { resultTypes: ['violations'], preload: false } as RunOptions,
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

/** Tables that have to be scrolled sideways to be read. */
const wideTables = (page: Page) =>
  page.evaluate(
    () => [...document.querySelectorAll('.table-scroll')].filter((box) => box.scrollWidth > box.clientWidth).length,
  );

/** As a link does: the script, and axe in it, are loaded once for all pages. */
async function visit(page: Page, path: string, text: string): Promise<void> {
  await page.setViewportSize(wide);
  await page.evaluate(async (to) => {
    history.pushState(null, '', to);
    dispatchEvent(new PopStateEvent('popstate'));
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  }, `/console${path}`);
  await page.getByText(text).first().waitFor();
  await page.waitForFunction(() => document.querySelector('main .loading') === null);
}

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
    assert.equal(await wideTables(page), 0, `${what} has a table that scrolls horizontally`);
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
  let troubles: Troubles;
  let watched: Watched;
  before(async () => {
    buildConsole();
    t = await startApp({ tokenLimit: 1_000_000 });
    publishCatalogue(t.dataDir);
    [scene, troubles] = await Promise.all([makeScene(t), makeTroubles(t)]);
    browser = await launchBrowser();
    watched = await openPage(browser);
  });
  after(async () => {
    await browser?.close();
    troubles?.close();
    await scene?.close();
    await t.stop();
  });

  test('the front page says what is here, before and after streams are published; plain files elsewhere do not', async () => {
    const { page, wrong } = watched;
    await page.goto(t.url);
    await page.getByRole('heading', { name: 'Sluice' }).waitFor();
    await inspect(page, 'front-unpublished');
    const hrefs = () => page.getByRole('link').evaluateAll((links) => links.map((link) => link.getAttribute('href')));
    assert.deepEqual(await hrefs(), ['/console', '/docs', '/docs/errors', '/v1/openapi.json']);

    const site = join(t.dataDir, 'catalogue');
    for (const [name, bytes] of await galleryFiles()) {
      mkdirSync(dirname(join(site, name)), { recursive: true });
      writeFileSync(join(site, name), bytes);
    }
    await page.goto(t.url);
    await page.getByText('A film').waitFor();
    const nav = page.getByRole('navigation', { name: 'This service' });
    assert.deepEqual(await nav.getByRole('link').allInnerTexts(), ['Console', 'API reference', 'OpenAPI']);
    await inspect(page, 'front-gallery');
    await nav.getByRole('link', { name: 'Console' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();

    const origin = createOrigin(site);
    const plain = createServer(origin.handle).listen(0, '127.0.0.1');
    await once(plain, 'listening');
    await page.goto(`http://127.0.0.1:${(plain.address() as AddressInfo).port}/`);
    await page.getByText('A film').waitFor();
    assert.equal(await nav.isVisible(), false);
    plain.close();
    await origin.close();
    assert.deepEqual(wrong, []);
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
    for (const [name, [path, text]] of Object.entries({ ...pagesOf(scene), ...troubles.pages })) {
      await c.test(name, async () => {
        await visit(page, path, text);
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
    await page.getByRole('dialog').getByLabel('Name').fill('ci');
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
      await visit(page, `/projects/${body.id}${place}`, text);
      await inspect(page, `empty${place.replaceAll('/', '-')}`);
    }
  });

  test('with 1,000 projects', async () => {
    const { page } = watched;
    await addProjects(t, 1000);
    await visit(page, '/projects?search=project', 'Project 0001');
    await inspect(page, 'many-projects');
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
