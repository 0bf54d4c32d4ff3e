// During an incident every surface tells the truth: the API, the command line, and each page that was open before it began.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startApp, type TestApp } from '../helpers/app.ts';
import { buildConsole, keepPicture, launchBrowser, noBrowser, openPage } from '../helpers/browser.ts';
import { cli, envOf } from '../helpers/cli.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';
import { signIn } from './scene.ts';

const withinMs = 10_000;
const reason = 'No instance of r1 is healthy. An instance does not pass its health check: / answered 500.';

describe('an incident', { skip: noBrowser }, () => {
  let t: TestApp;
  let browser: Browser;
  before(async () => {
    buildConsole();
    t = await startApp();
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    await t?.stop();
  });

  async function openAt(path: string): Promise<Page> {
    const { page } = await openPage(browser);
    await signIn(page, t.url, path);
    await page.getByText('production').first().waitFor();
    return page;
  }

  test('while visitors get 503, every surface says so within ten seconds, with the reason', async (context) => {
    const check = { path: '/', interval_s: 1, healthy_after: 1, unhealthy_after: 2 };
    const shop = await Shop.open(t.url, { health_check: check, variables: { STANDIN_FAIL_ON: '/fail' } });
    shop.pollMs = 150;
    await shop.released('registry.example/shop:1');
    const project = `/projects/${shop.project}`;
    const paths = ['', project, `${project}/environments/production`];
    const pages = await Promise.all(paths.map(openAt));
    const { slug } = (await shop.api('GET', '')).body;

    await shop.visit(undefined, '/fail');
    await until('a 503', async () => (await shop.visit()).status === 503, 30_000);
    const begun = performance.now();
    const tookMs = (what: string) => context.diagnostic(`${what}: ${Math.round(performance.now() - begun)} ms`);
    const seen = pages.map(async (page, index) => {
      await page.getByText(reason).first().waitFor({ timeout: withinMs });
      await page
        .getByText(/Went down/)
        .first()
        .waitFor({ timeout: withinMs });
      tookMs(`page ${paths[index] || '/'}`.replace(shop.project, '…'));
    });
    const said = [['status'], ['ps', '--project', slug]].map(async (args) => {
      const isTold = async () => / is down since \S+: No instance/.test((await cli(args, envOf(t.url))).stdout);
      await until(args.join(' '), isTold, withinMs);
      tookMs(`sluice ${args[0]}`);
    });
    const told = until('the API', async () => (await shop.environment()).health.reason === reason, withinMs, 100);
    await Promise.all([told.then(() => tookMs('API')), ...seen, ...said]);
    assert.match((await cli(['ps', '--project', slug], envOf(t.url))).stdout, /unhealthy .*failed: \/ answered 500/);
    const table = pages[2]!.getByRole('table', { name: 'Instances' });
    assert.match(await table.innerText(), /unhealthy[\s\S]*Failed/);
    for (const [index, name] of ['projects', 'project', 'environment'].entries()) {
      await keepPicture(pages[index]!, `incident-${name}`);
    }
  });
});
