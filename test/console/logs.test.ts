// The page of an environment's logs in a real browser: search, filters, links to a line, and following over a rollout.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startApp, type TestApp } from '../helpers/app.ts';
import { buildConsole, keepPicture, launchBrowser, noBrowser, openPage } from '../helpers/browser.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';
import { signIn } from './scene.ts';

describe('logs', { skip: noBrowser }, () => {
  let t: TestApp;
  let browser: Browser;
  let shop: Shop;
  let path: string;
  before(async () => {
    buildConsole();
    t = await startApp();
    browser = await launchBrowser();
    shop = await Shop.open(t.url, { variables: { STANDIN_ERROR_RATE: '1' } });
    await shop.released('registry.example/shop:1');
    path = `/projects/${shop.project}/environments/production/logs`;
    for (let n = 0; n < 40; n++) await print(`/basket/${n}`);
    await print('/Checkout/timeout');
    await stored('timeout');
  });
  after(async () => {
    await browser?.close();
    await t?.stop();
  });

  /** Every visit makes an instance print its path. */
  const print = (text: string) => shop.visit(undefined, text);
  const stored = (text: string) =>
    until(
      `${text} to be stored`,
      async () => (await shop.api('GET', `/environments/production/logs?search=${text}`)).body.data.length > 0,
    );
  const lines = (page: Page) => page.locator('span.log');
  const line = (page: Page, text: string) => lines(page).filter({ hasText: text });

  async function openLogs(query = ''): Promise<Page> {
    const { page } = await openPage(browser);
    await signIn(page, t.url, path + query);
    await lines(page).first().waitFor();
    return page;
  }

  async function searchFor(page: Page, text: string): Promise<void> {
    await page.getByLabel('Search').fill(text);
    await page.getByRole('button', { name: 'Search' }).click();
  }

  test('a search shows the lines with the text, in either case, and its address shows them to others', async () => {
    const page = await openLogs();
    await searchFor(page, 'checkout/time');
    await page.waitForFunction(() => document.querySelectorAll('span.log').length === 1);
    assert.match(await lines(page).innerText(), /GET \/Checkout\/timeout 500/);
    assert.match(page.url(), /\?search=checkout%2Ftime$/);
    const other = await openLogs(new URL(page.url()).search);
    assert.equal(await lines(other).count(), 1);
    await searchFor(page, 'never printed');
    await page.getByText('No log lines.').waitFor();
  });

  test('filters narrow to a revision, an instance and a stream', async () => {
    await shop.released('registry.example/shop:2');
    await print('/after-the-rollout');
    await stored('after-the-rollout');
    const page = await openLogs();
    await page.getByLabel('Revision').fill('r2');
    await page.getByLabel('Stream').selectOption('stderr');
    await page.getByRole('button', { name: 'Search' }).click();
    await line(page, '/after-the-rollout').waitFor();
    const texts = await lines(page).allInnerTexts();
    assert.ok(
      texts.every((text) => /\br2 /.test(text) && text.includes('GET')),
      texts.join(''),
    );
    const [entry] = (await shop.api('GET', '/environments/production/logs?search=after-the-rollout')).body.data;
    await page.getByLabel('Instance').fill(entry.instance);
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForFunction(() => location.search.includes('instance='));
    await line(page, '/after-the-rollout').waitFor();
  });

  test('the time of a line is a link to it, with what is around it, though others have come since', async () => {
    const page = await openLogs();
    await line(page, '/basket/20 ').getByRole('link').click();
    const marked = page.locator('span.log.marked');
    await marked.waitFor();
    const address = page.url();
    for (let n = 0; n < 20; n++) await print(`/later/${n}`);
    await stored('later/19');
    const other = await openLogs(new URL(address).search);
    const shown = other.locator('span.log.marked');
    await shown.waitFor();
    assert.match(await shown.innerText(), /GET \/basket\/20 500/);
    await other.waitForFunction(() => {
      const { top, bottom } = document.querySelector('span.log.marked')!.getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight;
    });
    assert.equal(await line(other, '/basket/19 ').count(), 1);
    assert.equal(await line(other, '/basket/21 ').count(), 1);
    await keepPicture(other, 'logs-line');
  });

  test('following shows each line once as it comes, over a rollout, also of a search', async () => {
    const page = await openLogs();
    await searchFor(page, 'live/');
    await page.getByText('No log lines.').waitFor();
    await page.getByLabel('Follow').check();
    await print('/live/1');
    await line(page, '/live/1 ').waitFor();
    await shop.released('registry.example/shop:3');
    await print('/unrelated');
    await print('/live/2');
    await line(page, '/live/2 ').waitFor();
    assert.equal(await lines(page).count(), 2);
    assert.match((await line(page, '/live/2 ').innerText()).trim(), /\br3 /);
  });
});
