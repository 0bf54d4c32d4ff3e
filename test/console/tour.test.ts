// The console in a real browser: from the first sign-in to a rollback, at the rate limit, and across a restart.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { createLog } from '../../src/lib/log.ts';
import { adminToken, call, isolatedEnv, startApp, type TestApp } from '../helpers/app.ts';
import { buildConsole, keepPicture, launchBrowser, noBrowser, openPage } from '../helpers/browser.ts';
import { freePort } from '../helpers/free-port.ts';
import { quick, Shop } from '../helpers/shop.ts';
import { signIn } from './scene.ts';

const shown = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();
const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first();
const stepIs = (page: Page, state: string) =>
  page.locator('.stepper [aria-current="step"]', { hasText: state }).waitFor();

describe('console', { skip: noBrowser }, () => {
  let t: TestApp;
  let browser: Browser;
  before(async () => {
    buildConsole();
    t = await startApp();
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    await t.stop();
  });

  test('the tour: sign in, project, deploy, canary, promote, roll back', async () => {
    const { page, wrong } = await openPage(browser);
    await signIn(page, t.url);
    await shown(page, 'No projects yet.');
    await page.getByLabel('Name').fill('Tea house');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Tea house' }).waitFor();
    const project = /prj_\w+/.exec(page.url())![0];
    await call(t.url, 'PATCH', `/v1/projects/${project}/environments/production`, {
      body: { ...quick, canary: { advance: 'manual', bake_s: 1 } },
    });

    await page.getByLabel('Image').fill('registry.example/tea:1.0');
    await button(page, 'Deploy').click();
    await stepIs(page, 'succeeded');
    await page.getByRole('img', { name: 'Traffic: r1 (live) 100%' }).waitFor();

    await page.getByRole('link', { name: 'production' }).click();
    await page.getByLabel('Image').fill('registry.example/tea:1.1');
    await page.getByLabel('Initial traffic (%)').fill('20');
    await page.getByLabel('Note').fill('Sweeter');
    await button(page, 'Deploy').click();
    await stepIs(page, 'canary');
    await page.getByRole('img', { name: 'Traffic: r1 (live) 80%, r2 (canary) 20%' }).waitFor();
    await shown(page, 'Metrics of this step');
    await shown(page, 'waiting for promotion');
    await keepPicture(page, 'tour-canary');
    await button(page, 'Promote').click();
    await stepIs(page, 'succeeded');
    await page.getByRole('img', { name: 'Traffic: r2 (live) 100%' }).waitFor();

    await page.getByRole('link', { name: 'production' }).click();
    await button(page, 'Roll back to r1').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back to r1' }).click();
    await stepIs(page, 'succeeded');
    await page.getByRole('img', { name: 'Traffic: r3 (live) 100%' }).waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await shown(page, /Rollback of registry.example\/tea:1.0 as r3/);
    await keepPicture(page, 'tour-end');
    assert.deepEqual(wrong, []);
    await page.context().close();
  });

  test('changed settings are pending until they are redeployed', async () => {
    const shop = await Shop.open(t.url);
    await shop.released('registry.example/tea:1.0');
    const { page, wrong } = await openPage(browser);
    await signIn(page, t.url, `/projects/${shop.project}/environments/production`);
    await page.getByLabel('Memory (MiB)').fill('256');
    await page.getByLabel('Interval (s)').fill('4');
    await page.getByRole('spinbutton', { name: 'Instances' }).fill('2');
    await button(page, 'Save settings').click();
    await shown(page, 'Saved. 2 changes apply with the next deployment.');
    await page.getByRole('heading', { name: '2 changes apply with the next deployment' }).waitFor();
    await shown(page, 'resources.memory_mb');
    await shown(page, '512 → 256');
    await page.getByLabel('Name').fill('API_KEY');
    await page.getByLabel('Value').fill('secret-of-the-house');
    await button(page, 'Set variable').click();
    await page.getByRole('heading', { name: '3 changes apply with the next deployment' }).waitFor();
    await shown(page, 'variables.API_KEY');
    assert.ok(!(await page.content()).includes('secret-of-the-house'));
    await keepPicture(page, 'pending-changes');
    await button(page, 'Redeploy').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Redeploy now' }).click();
    await stepIs(page, 'succeeded');
    await page.getByRole('link', { name: 'production' }).click();
    await page.getByRole('heading', { name: 'Settings' }).waitFor();
    assert.equal(await page.getByRole('heading', { name: /with the next deployment/ }).count(), 0);
    assert.equal(await page.getByRole('button', { name: 'Redeploy' }).count(), 0);
    assert.deepEqual((await shop.revision('r2')).resources, { memory_mb: 256, cpus: 1 });
    assert.deepEqual(wrong, []);
    await page.context().close();
  });

  test('an error about a field is shown at the field, and the input is kept', async () => {
    const shop = await Shop.open(t.url);
    const { page } = await openPage(browser);
    await signIn(page, t.url, `/projects/${shop.project}`);
    await page.getByLabel('Image').fill('Not An Image');
    await page.getByLabel('Initial traffic (%)').fill('150');
    await button(page, 'Deploy').click();
    const image = page.getByLabel('Image');
    await page.waitForFunction(() => document.querySelector('[aria-invalid]') !== null);
    const percent = page.getByLabel('Initial traffic (%)');
    for (const [field, value] of [
      [image, 'Not An Image'],
      [percent, '150'],
    ] as const) {
      assert.equal(await field.inputValue(), value);
      assert.equal(await field.getAttribute('aria-invalid'), 'true');
      const ids = (await field.getAttribute('aria-describedby'))!.split(' ');
      assert.match(await page.locator(`[id="${ids.at(-1)}"]`).innerText(), /must/);
    }
    await page.context().close();
  });

  test('a wrong token is rejected with the reason; one that is revoked later ends the session', async () => {
    const { page } = await openPage(browser);
    await signIn(page, t.url, '/tokens', 'slc_not-a-token');
    await shown(page, 'Invalid token.');
    const { body } = await t.call('POST', '/v1/tokens', {
      body: { name: 'short-lived', scopes: ['tokens:read', 'events:read'] },
    });
    await page.getByLabel('Token').fill(body.token);
    await button(page, 'Sign in').click();
    await page.getByRole('heading', { name: 'Tokens' }).waitFor();
    assert.equal(
      await page.getByRole('link', { name: 'Webhooks' }).count(),
      0,
      'pages without the scope are not offered',
    );
    assert.equal(await button(page, 'Create token').count(), 0);
    assert.ok(!page.url().includes('slc_'));
    const kept = await page.evaluate(() => [
      JSON.stringify(localStorage),
      document.cookie,
      Object.keys(sessionStorage),
    ]);
    assert.ok(!String(kept[0]).includes('slc_') && kept[1] === '');
    assert.deepEqual(kept[2], ['sluice-token']);
    await t.call('DELETE', `/v1/tokens/${body.id}`);
    await shown(page, /The token was revoked/);
    assert.deepEqual(await page.evaluate(() => Object.keys(sessionStorage)), []);
    await page.context().close();
  });

  test('a token is revoked with every token that it created, if asked; one that can do more is not offered', async () => {
    const { body: parent } = await t.call('POST', '/v1/tokens', {
      body: { name: 'leaked', scopes: ['projects:read', 'tokens:write'] },
    });
    const made = { name: 'made by it', scopes: ['projects:read'] };
    const { body: child } = await t.call('POST', '/v1/tokens', { token: parent.token, body: made });
    const { body: other } = await t.call('POST', '/v1/tokens', {
      body: { name: 'on duty', scopes: ['tokens:read', 'tokens:write', 'projects:read'] },
    });
    const { page } = await openPage(browser);
    await signIn(page, t.url, '/tokens', other.token);
    await button(page, 'Revoke leaked').click();
    await page.getByRole('checkbox', { name: 'Also revoke every token that it created' }).check();
    assert.equal(await button(page, 'Revoke admin').count(), 0);
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await shown(page, 'Revoked leaked and every token that it created.');
    assert.equal((await t.call('GET', '/v1/token', { token: child.token })).body.error.code, 'token_revoked');
    await page.context().close();
  });

  test('a deep link survives a reload, and back and forward work', async () => {
    const shop = await Shop.open(t.url);
    const { page } = await openPage(browser);
    const path = `/projects/${shop.project}/environments/production`;
    await signIn(page, t.url, path);
    await page.getByRole('heading', { name: 'production' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'production' }).waitFor();
    assert.equal(new URL(page.url()).pathname, `/console${path}`);
    await page.getByRole('link', { name: 'Domains' }).click();
    await shown(page, 'No domains yet.');
    await page.goBack();
    await page.getByRole('heading', { name: 'production' }).waitFor();
    await page.goForward();
    await shown(page, 'No domains yet.');
    await page.goto(`${t.url}/console/projects/prj_01k9xw3v5qfk2t8m7c4b6d9e0h`);
    await shown(page, /It may have been deleted/);
    await page.context().close();
  });

  test('a change of state comes to the screen by itself, without polling', async (c) => {
    const shop = await Shop.open(t.url, { canary: { bake_s: 3600 } });
    await shop.released('registry.example/shop:1');
    const { id } = await shop.deploy('registry.example/shop:2', { strategy: 'canary' });
    await shop.reaches(id, 'canary');
    const { page, wrong } = await openPage(browser);
    // The page's timers of a second and more never fire: only the stream can bring a change.
    await page.addInitScript(() => {
      const start = window.setTimeout.bind(window);
      const short = (run: () => void, delayMs = 0) => (delayMs < 1000 ? start(run, delayMs) : 0);
      Object.assign(window, { setTimeout: short });
    });
    await signIn(page, t.url, `/projects/${shop.project}/deployments/${id}`);
    await page.locator('.connection.open').waitFor();
    await page.locator('.phase', { hasText: 'baking' }).waitFor();
    const took: number[] = [];
    for (let round = 0; round < 10; round++) {
      const [verb, word] = round % 2 === 0 ? (['pause', 'paused'] as const) : (['resume', 'baking'] as const);
      const seen = page.evaluate(
        (text) =>
          new Promise<number>((resolve) => {
            const look = () => {
              if (document.querySelector('.phase')?.textContent?.includes(text)) resolve(Date.now());
              else requestAnimationFrame(look);
            };
            look();
          }),
        word,
      );
      // Taken before the request, so the commit is later than this.
      const asked = Date.now();
      assert.equal((await shop.api('POST', `/deployments/${id}/${verb}`)).status, 200);
      took.push((await seen) - asked);
    }
    took.sort((a, b) => a - b);
    c.diagnostic(`request to screen, ms: median ${took[5]}, slowest ${took.at(-1)} (${took.join(' ')})`);
    assert.deepEqual(wrong, []);
    await page.context().close();
  });

  test('at the rate limit the console says so, waits, and stays usable', async () => {
    const limit = 30;
    const tight = await startApp({ tokenLimit: limit });
    const { page } = await openPage(browser);
    await signIn(page, tight.url);
    await shown(page, 'No projects yet.');
    for (let count = 0; count < limit; count++) await tight.call('GET', '/v1/token');
    await page.getByRole('link', { name: 'Webhooks' }).click();
    await shown(page, /Rate limit reached: updates resume in/);
    await page.getByRole('link', { name: 'Projects' }).click();
    await shown(page, 'No projects yet.');
    await page.context().close();
    await tight.stop();
  });

  test('when the service restarts, the console says so, reconnects, and keeps the input', async () => {
    const { env, clean } = await isolatedEnv();
    const log = createLog({ level: 'silent', format: 'json' });
    const config = readConfig({ ...env, SLUICE_PORT: String(await freePort()) }, false);
    let app = await createApp(config, { log });
    const url = app.apiUrl();
    const shop = await Shop.open(url);
    await shop.released('registry.example/shop:1');
    const { page, wrong } = await openPage(browser);
    await signIn(page, url, `/projects/${shop.project}`, adminToken);
    await page.locator('.connection.open').waitFor();
    await page.getByLabel('Image').fill('registry.example/shop:2');
    await page.getByLabel('Note').fill('typed before the restart');

    await app.stop();
    await shown(page, /Reconnecting… The data shown may be out of date/);
    await page.getByRole('img', { name: 'Traffic: r1 (live) 100%' }).waitFor();
    await button(page, 'Deploy').click();
    await shown(page, /The service is not responding. Your input is kept./);
    await keepPicture(page, 'restart-away');

    app = await createApp(config, { log });
    await page.locator('.connection.open').waitFor();
    await page.locator('.banner').waitFor({ state: 'detached' });
    assert.equal(await page.getByLabel('Note').inputValue(), 'typed before the restart');
    await shop.set({ locked: { reason: 'locked after the restart' } });
    await shown(page, /locked after the restart/);
    await shop.set({ locked: null });
    await button(page, 'Deploy').click();
    await page.getByRole('heading', { name: 'r2 to production' }).waitFor();
    await shown(page, 'typed before the restart');
    assert.deepEqual(
      wrong.filter((line) => !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|503|Failed to load/.test(line)),
      [],
    );
    await page.context().close();
    await app.stop();
    await clean();
  });
});
