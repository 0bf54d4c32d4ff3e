// The console in a real browser: from the first sign-in to a rollback, by mouse and by keyboard alone; an incident on every
// surface; logs; at the rate limit; and across a restart. One service and one browser serve them all.
import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { createLog } from '../../src/lib/log.ts';
import { adminToken, call, isolatedEnv, startApp, type TestApp } from '../helpers/app.ts';
import {
  buildConsole,
  keepPicture,
  launchBrowser,
  noBrowser,
  openPage,
  type Watched,
  watch,
} from '../helpers/browser.ts';
import { cli, envOf } from '../helpers/cli.ts';
import { freePort } from '../helpers/free-port.ts';
import { quick, Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';
import { addProjects, signIn } from './scene.ts';

const shown = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor();
const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first();
const dialog = (page: Page) => page.getByRole('dialog');
const heading = (page: Page, name: string | RegExp) => page.getByRole('heading', { name }).first().waitFor();
const requests = (page: Page, name: string) =>
  page
    .getByRole('img', { name: `Requests: ${name}` })
    .first()
    .waitFor();

/** How a person uses a page: with the mouse, or with keys alone. */
interface Hands {
  press(page: Page, target: Locator): Promise<void>;
  fill(page: Page, target: Locator, text: string): Promise<void>;
  /** To what has this name. */
  goTo(page: Page, name: string): Promise<void>;
}

const mouse: Hands = {
  press: (_page, target) => target.click(),
  fill: (_page, target, text) => target.fill(text),
  goTo: (page, name) => page.getByRole('link', { name, exact: true }).first().click(),
};

const maxTabs = 150;

/** Tab by Tab, as one does who has no mouse. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.waitFor();
  for (let count = 0; count < maxTabs; count++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`${target} cannot be reached with Tab`);
}

const keyboard: Hands = {
  async press(page, target) {
    await tabTo(page, target);
    await page.keyboard.press('Enter');
  },
  async fill(page, target, text) {
    await tabTo(page, target);
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type(text);
  },
  async goTo(page, name) {
    await page.keyboard.press('ControlOrMeta+k');
    await page.keyboard.type(name);
    await page.getByRole('option').filter({ hasText: name }).first().waitFor();
    const options = await page.getByRole('option').allInnerTexts();
    for (let at = options.findIndex((text) => text.includes(name)); at > 0; at--)
      await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
  },
};

const withinMs = 10_000;
const reason = 'No instance of r1 is healthy. An instance does not pass its health check: / answered 500.';

describe('console', { skip: noBrowser }, () => {
  let t: TestApp;
  let browser: Browser;
  let signedIn: BrowserContext;
  before(async () => {
    buildConsole();
    t = await startApp({ tokenLimit: 1_000_000 });
    browser = await launchBrowser();
    const { page } = await openPage(browser);
    signedIn = page.context();
    await signIn(page, t.url);
    await heading(page, 'Projects');
    await page.close();
  });

  /** A tab of the browser that is signed in already. */
  async function open(path: string): Promise<Watched> {
    const page = await signedIn.newPage();
    const wrong = watch(page);
    await page.goto(`${t.url}/console${path}`);
    return { page, wrong };
  }
  after(async () => {
    await browser?.close();
    await t?.stop();
  });

  for (const [by, hands] of [
    ['by mouse', mouse],
    ['by keyboard alone', keyboard],
  ] as const) {
    test(`${by}: deploy, watch, promote; why did it fail; go back; find who changed it`, async () => {
      const { page, wrong } = await openPage(browser);
      const name = `Tea house ${by}`;
      await page.goto(`${t.url}/console`);
      await hands.fill(page, page.getByLabel('Token'), adminToken);
      await hands.press(page, button(page, 'Sign in'));
      await heading(page, 'Projects');
      await hands.press(page, button(page, /New project|Create a project/));
      await hands.fill(page, dialog(page).getByLabel('Name'), name);
      await hands.press(page, dialog(page).getByRole('button', { name: 'Create project' }));
      await heading(page, 'production');
      const project = /prj_\w+/.exec(page.url())![0];
      const set = (body: object) => call(t.url, 'PATCH', `/v1/projects/${project}/environments/production`, { body });
      await set({ ...quick, canary: { advance: 'manual', warmup_s: 0, bake_s: 1, steps: [60] } });

      // Deploy: the page of an empty environment asks for an image.
      await hands.fill(page, page.getByRole('textbox', { name: 'Image' }), 'registry.example/tea:1.0');
      await hands.press(page, button(page, 'Deploy'));
      await heading(page, 'r1 was deployed to production');

      // A canary, watched and promoted from the page of its environment.
      await hands.goTo(page, by === 'by mouse' ? 'production' : `${name} / production`);
      await heading(page, 'production');
      await hands.press(page, button(page, 'Deploy…'));
      const form = dialog(page);
      await page.waitForFunction(() => document.activeElement?.getAttribute('name') === 'image');
      assert.equal(await form.getByLabel('Image').inputValue(), 'registry.example/tea:1.0', 'what runs now');
      await hands.fill(page, form.getByLabel('Image'), 'registry.example/tea:1.1');
      if (by === 'by mouse') await form.getByLabel('Strategy').selectOption('canary');
      else {
        await tabTo(page, form.getByLabel('Strategy'));
        await page.keyboard.press('c');
      }
      await hands.fill(page, form.getByLabel('Initial traffic'), '20');
      await hands.fill(page, form.getByLabel('Note'), 'Sweeter');
      await hands.press(page, form.getByRole('button', { name: 'Deploy' }));
      await requests(page, '80 % r1, 20 % r2');
      await shown(page, /waits for you to promote it/);
      const steps = page.getByRole('list', { name: 'Steps of the canary' }).getByRole('listitem');
      assert.deepEqual(await steps.allInnerTexts(), ['20 % · by hand', '60 % · by hand', '100 %'], 'all steps ahead');
      await shown(page, 'It would be undone at odds of');
      if (by === 'by mouse') await keepPicture(page, 'tour-canary');
      await hands.press(page, button(page, 'Promote r2'));
      await requests(page, '40 % r1, 60 % r2');
      await hands.press(page, button(page, 'Promote r2'));
      await heading(page, 'r2 was deployed to production');
      await shown(page, 'registry.example/tea:1.0 → registry.example/tea:1.1');

      // Why did it fail?
      await set({ variables: { STANDIN_IMAGE_MISSING: '1' } });
      const body = { environment: 'production', image: 'registry.example/tea:gone' };
      await call(t.url, 'POST', `/v1/projects/${project}/deployments`, { body });
      await page.keyboard.press('g');
      await page.keyboard.press('p');
      await heading(page, 'Projects');
      await hands.press(page, page.getByRole('link', { name: /^r3 failed: there is no image/ }).first());
      await heading(page, 'r3 was not deployed');
      await shown(page, 'r2 serves all requests.');
      await shown(page, '+ STANDIN_IMAGE_MISSING');

      // Go back, with what the rollback changes said before.
      await set({ variables: { STANDIN_IMAGE_MISSING: null } });
      await hands.press(page, page.getByRole('link', { name: 'production', exact: true }).first());
      await shown(page, /healthy on r2 · r3 failed/);
      await hands.press(page, page.getByRole('link', { name: 'Revisions' }));
      await hands.press(page, button(page, 'Roll back to r1'));
      await dialog(page).getByText('registry.example/tea:1.1 → registry.example/tea:1.0').waitFor();
      await hands.press(page, dialog(page).getByRole('button', { name: 'Roll back to r1' }));
      await heading(page, 'r4 was rolled back to production');

      // Who changed it?
      await hands.press(page, page.getByRole('link', { name: 'Audit log' }));
      await heading(page, 'Audit log');
      await page.keyboard.press('/');
      await page.keyboard.type('environments.update');
      await shown(page, /canary.steps none → 60/);
      const row = page.getByRole('row').filter({ hasText: 'canary.steps' }).filter({ hasText: name });
      assert.match(await row.innerText(), /admin[\s\S]*changed an environment[\s\S]*production/);
      if (by === 'by mouse') await keepPicture(page, 'tour-audit');
      assert.deepEqual(wrong, []);
      await page.context().close();
    });
  }

  test('settings: human units, defaults, mistakes named before the request, pending until they are redeployed', async () => {
    const shop = await Shop.open(t.url);
    await shop.released('registry.example/tea:1.0');
    const at = `/projects/${shop.project}/environments/production`;
    const { page, wrong } = await open(`${at}/settings`);
    const analysis = page.getByRole('form', { name: 'Canary analysis' });
    assert.ok(await analysis.getByRole('button').isDisabled(), 'nothing to save yet');
    await analysis.getByLabel('Maximum error rate').fill('2.5');
    await shown(page, '1 field changed');
    await analysis.getByRole('button').click();
    await shown(page, 'Canary analysis of production saved.');
    const canary = page.getByRole('form', { name: 'Canary', exact: true });
    await canary.getByLabel('Time at each step').fill('five');
    await canary.getByRole('button').click();
    await shown(page, 'must be a time, such as 30 s, 5 min or 2 h');
    await canary.getByLabel('Time at each step').fill('2 d');
    await canary.getByRole('button').click();
    await shown(page, 'must be 1 d or less');
    await canary.getByLabel('Time at each step').fill('1 h 30 min');
    await canary.getByRole('button').click();
    await shown(page, 'Canary of production saved.');
    const { canary: saved } = await shop.environment();
    assert.deepEqual([saved.max_error_rate, saved.bake_s], [0.025, 5400]);

    await page.getByLabel('Memory').fill('256');
    await button(page, 'Save resources').click();
    await heading(page, '1 change applies with the next deployment');
    await shown(page, '512 → 256');
    await page.getByRole('link', { name: 'Variables' }).click();
    await page.getByLabel('Name').fill('API KEY');
    await button(page, 'Set variable').click();
    await shown(page, /must have only letters, digits and underscores/);
    await page.getByLabel('Name').fill('API_KEY');
    await page.getByLabel('Value').fill('secret-of-the-house');
    await button(page, 'Set variable').click();
    await heading(page, '2 changes apply with the next deployment');
    assert.ok(!(await page.content()).includes('secret-of-the-house'));
    await keepPicture(page, 'pending-changes');
    await button(page, 'Redeploy now').click();
    await dialog(page).getByRole('button', { name: 'Redeploy now' }).click();
    await heading(page, 'r2 was deployed to production');
    await shown(page, '+ API_KEY');
    assert.deepEqual((await shop.revision('r2')).resources, { memory_mb: 256, cpus: 1 });

    // What is destructive says what will happen and asks for the name.
    await page.getByRole('link', { name: 'production', exact: true }).first().click();
    await page.getByRole('link', { name: 'Settings' }).click();
    await button(page, 'Delete environment').click();
    await dialog(page).getByText('1 instance stops').waitFor();
    const confirm = dialog(page).getByRole('button', { name: 'Delete production' });
    assert.ok(await confirm.isDisabled());
    await dialog(page).getByLabel('Type production to confirm').fill('production');
    await confirm.click();
    await shown(page, 'Deleted the environment production.');
    assert.deepEqual(wrong, []);
    await page.close();
  });

  test('an error of the service about a field is shown at the field, and the input is kept', async () => {
    const shop = await Shop.open(t.url);
    const { page } = await open(`/projects/${shop.project}/environments/production`);
    const image = page.getByRole('textbox', { name: 'Image' });
    for (const [text, fault] of [
      ['', /is needed/],
      ['two words', /must be an image/],
      ['UPPER/Case', /must/],
    ] as const) {
      await image.fill(text);
      await button(page, 'Deploy').click();
      await page.waitForFunction(() => document.querySelector('[aria-invalid]') !== null);
      const ids = (await image.getAttribute('aria-describedby'))!.split(' ');
      await page
        .locator(`[id="${ids.at(-1)}"]`)
        .filter({ hasText: fault })
        .waitFor();
      assert.equal(await image.inputValue(), text);
    }
    await page.close();
  });

  test('1,000 projects: found as one types, filtered and sorted by the service, promoted from the list', async (c) => {
    const made = await startApp({ tokenLimit: 1_000_000 });
    const first = await Shop.open(made.url, { canary: { advance: 'manual', bake_s: 1 } });
    await first.api('PATCH', '', { name: 'Zebra crossing' });
    await first.released('registry.example/zebra:7.7');
    const canary = await first.deploy('registry.example/zebra:7.8', { strategy: 'canary' });
    await first.reaches(canary.id, 'canary');
    await addProjects(made, 1000, 10);
    const { page, wrong } = await openPage(browser);
    await signIn(page, made.url);
    await shown(page, 'Zebra crossing');
    const begun = performance.now();
    await page.reload();
    await shown(page, 'Zebra crossing');
    c.diagnostic(
      `1,001 projects and 10,000 deployments, reload to first row: ${Math.round(performance.now() - begun)} ms`,
    );
    await shown(page, '50 of 1,001 projects');
    await page.getByRole('columnheader', { name: 'Project' }).getByRole('button').click();
    await page.getByRole('rowheader', { name: /Project 0000/ }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('zebra:7');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
    assert.match(page.url(), /search=zebra/);
    await page.getByRole('button', { name: 'Promote of production' }).click();
    await shown(page, 'r2 was promoted.');
    await shown(page, 'r2 deployed');
    await page.getByLabel('Search projects, images and labels').fill('no such thing');
    await shown(page, 'Nothing found.');
    await button(page, 'Show all 1,001').click();
    await page.getByLabel('Filter by health').selectOption('healthy');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
    assert.deepEqual(wrong, []);
    await page.context().close();
    await made.stop();
  });

  test('sign in: a wrong token is rejected with the reason; a session survives a reload, and ends with its token', async () => {
    const { page } = await openPage(browser);
    await signIn(page, t.url, '/tokens', 'slc_not-a-token');
    await shown(page, 'Invalid token.');
    const { body } = await t.call('POST', '/v1/tokens', {
      body: { name: 'short-lived', scopes: ['tokens:read', 'events:read'] },
    });
    await page.getByLabel('Token').fill(body.token);
    await button(page, 'Sign in').click();
    await heading(page, 'Tokens');
    assert.equal(
      await page.getByRole('link', { name: 'Webhooks' }).count(),
      0,
      'pages without the scope are not offered',
    );
    assert.equal(await button(page, 'New token').count(), 0);
    const [kept, cookies] = [
      await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])),
      await page.context().cookies(),
    ];
    assert.equal(kept, '[{},{},""]', 'no script can read what signs in');
    assert.deepEqual(
      cookies.map(({ name, path, httpOnly, sameSite }) => [name, path, httpOnly, sameSite]),
      [['sluice_session', '/console/session', true, 'Strict']],
    );
    await page.reload();
    await heading(page, 'Tokens');
    const other = await page.context().newPage();
    await other.goto(`${t.url}/console/session`);
    await other.getByText('this one').waitFor();
    await other.close();
    await t.call('DELETE', `/v1/tokens/${body.id}`);
    await shown(page, 'The session has ended. Sign in again.');
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
    await page.getByLabel('Type leaked to confirm').fill('leaked');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await shown(page, 'Revoked leaked and every token that it created.');
    assert.equal((await t.call('GET', '/v1/token', { token: child.token })).body.error.code, 'token_revoked');
    await page.context().close();
  });

  test('a deep link survives a reload, and back and forward work', async () => {
    const shop = await Shop.open(t.url);
    const path = `/projects/${shop.project}/environments/production`;
    const { page } = await open(path);
    await page.getByRole('heading', { name: 'production' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'production' }).waitFor();
    assert.equal(new URL(page.url()).pathname, `/console${path}`);
    await page.getByRole('navigation', { name: 'Environment' }).getByRole('link', { name: 'Domains' }).click();
    await shown(page, 'No domains yet.');
    assert.equal(new URL(page.url()).pathname, `/console${path}/domains`);
    await page.goBack();
    await page.getByRole('heading', { name: 'production' }).waitFor();
    await page.goForward();
    await shown(page, 'No domains yet.');
    await page.goto(`${t.url}/console/projects/prj_01k9xw3v5qfk2t8m7c4b6d9e0h`);
    await shown(page, /It may have been deleted/);
    await page.close();
  });

  test('a change of state comes to the screen by itself, without polling', async (c) => {
    const shop = await Shop.open(t.url, { canary: { bake_s: 3600 } });
    await shop.released('registry.example/shop:1');
    const { id } = await shop.deploy('registry.example/shop:2', { strategy: 'canary' });
    await shop.reaches(id, 'canary');
    const page = await signedIn.newPage();
    const wrong = watch(page);
    // The page's timers of a second and more never fire: only the stream can bring a change.
    await page.addInitScript(() => {
      const start = window.setTimeout.bind(window);
      const short = (run: () => void, delayMs = 0) => (delayMs < 1000 ? start(run, delayMs) : 0);
      Object.assign(window, { setTimeout: short });
    });
    await page.goto(`${t.url}/console/projects/${shop.project}/deployments/${id}`);
    await page.locator('.connection.open').waitFor();
    await page.locator('.phase', { hasText: 'being watched' }).waitFor();
    const took: number[] = [];
    for (let round = 0; round < 10; round++) {
      const [verb, word] = round % 2 === 0 ? (['pause', 'paused'] as const) : (['resume', 'being watched'] as const);
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
    await page.close();
  });

  test('at the rate limit the console says so, waits, and stays usable', async () => {
    const limit = 30;
    const tight = await startApp({ tokenLimit: limit });
    const { page } = await openPage(browser);
    await signIn(page, tight.url);
    await shown(page, 'Deploy something in under a minute');
    // Its session has a limit of its own, which is used up with its cookie.
    const [cookie] = await page.context().cookies(`${tight.url}/console/session`);
    const headers = { origin: tight.url, cookie: `${cookie!.name}=${cookie!.value}` };
    const { token } = (await tight.call('POST', '/console/session/token', { token: null, headers })).body;
    for (let count = 0; count < limit; count++) await tight.call('GET', '/v1/token', { token });
    await page.getByRole('link', { name: 'Webhooks' }).click();
    await shown(page, /Rate limit reached: updates resume in/);
    await page.getByRole('link', { name: 'Projects' }).click();
    await shown(page, 'Deploy something in under a minute');
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
    await signIn(page, url, `/projects/${shop.project}/environments/production`, adminToken);
    await heading(page, 'production');
    await button(page, 'Deploy…').click();
    await page.locator('.connection.open').waitFor();
    await page.getByLabel('Image').fill('registry.example/shop:2');
    await page.getByLabel('Note').fill('typed before the restart');

    await app.stop();
    await shown(page, /Reconnecting… The data shown may be out of date/);
    await page.getByRole('img', { name: 'Traffic: r1 (live) 100%' }).waitFor({ state: 'attached' });
    await dialog(page).getByRole('button', { name: 'Deploy' }).click();
    await shown(page, /The service is not responding. Your input is kept./);
    await keepPicture(page, 'restart-away');

    app = await createApp(config, { log });
    await page.locator('.connection.open').waitFor();
    await page.locator('.banner').waitFor({ state: 'detached' });
    assert.equal(await page.getByLabel('Note').inputValue(), 'typed before the restart');
    await shop.set({ locked: { reason: 'locked after the restart' } });
    await shown(page, /locked after the restart/);
    await shop.set({ locked: null });
    await dialog(page).getByRole('button', { name: 'Deploy' }).click();
    await heading(page, /^r2 /);
    await shown(page, 'typed before the restart');
    assert.deepEqual(
      wrong.filter((line) => !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|503|Failed to load/.test(line)),
      [],
    );
    await page.context().close();
    await app.stop();
    await clean();
  });

  async function openAt(path: string): Promise<Page> {
    const { page } = await open(path);
    await page.getByText('production').first().waitFor();
    return page;
  }

  test('while visitors get 503, every surface says so within ten seconds, with the reason', async (context) => {
    // On a busy machine a check may be slow; one without an answer would be another reason.
    const check = { path: '/', interval_s: 1, timeout_s: 30, healthy_after: 1, unhealthy_after: 2 };
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
        .getByText(/[Ww]ent down/)
        .first()
        .waitFor({ timeout: withinMs });
      tookMs(`page ${paths[index] || '/'}`.replace(shop.project, '…'));
    });
    const told = until('the API', async () => (await shop.environment()).health.reason === reason, withinMs, 100);
    await Promise.all([told.then(() => tookMs('API')), ...seen]);
    // The command line keeps nothing: what it asks once the API knows, it says.
    const isTold = / is down since \S+: No instance/;
    assert.match((await cli(['status'], envOf(t.url))).stdout, isTold);
    const instances = (await cli(['ps', '--project', slug], envOf(t.url))).stdout;
    assert.match(instances, isTold);
    assert.match(instances, /unhealthy .*failed: \/ answered 500/);
    const table = pages[2]!.getByRole('table', { name: 'Instances' });
    assert.match(await table.innerText(), /unhealthy/);
    for (const [index, name] of ['projects', 'project', 'environment'].entries()) {
      await keepPicture(pages[index]!, `incident-${name}`);
      await pages[index]!.close();
    }
  });

  describe('logs', () => {
    let shop: Shop;
    let path: string;
    before(async () => {
      shop = await Shop.open(t.url, { variables: { STANDIN_ERROR_RATE: '1' } });
      await shop.released('registry.example/shop:1');
      path = `/projects/${shop.project}/environments/production/logs`;
      for (let n = 0; n < 40; n++) await print(`/basket/${n}`);
      await print('/Checkout/timeout');
      await stored('timeout');
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

    async function openLogs(c: TestContext, query = ''): Promise<Page> {
      const { page } = await open(path + query);
      c.after(() => page.close());
      await lines(page).first().waitFor();
      return page;
    }

    async function searchFor(page: Page, text: string): Promise<void> {
      await page.getByLabel('Search').fill(text);
      await page.getByRole('button', { name: 'Search', exact: true }).click();
    }

    test('a search shows the lines with the text, in either case, and its address shows them to others', async (c) => {
      const page = await openLogs(c);
      await searchFor(page, 'checkout/time');
      await page.waitForFunction(() => document.querySelectorAll('span.log').length === 1);
      assert.match(await lines(page).innerText(), /GET \/Checkout\/timeout 500/);
      assert.match(page.url(), /\?search=checkout%2Ftime$/);
      const other = await openLogs(c, new URL(page.url()).search);
      assert.equal(await lines(other).count(), 1);
      await searchFor(page, 'never printed');
      await page.getByText('No log lines.').waitFor();
    });

    test('filters narrow to a revision, an instance and a stream', async (c) => {
      await shop.released('registry.example/shop:2');
      await print('/after-the-rollout');
      await stored('after-the-rollout');
      const page = await openLogs(c);
      await page.getByLabel('Revision').fill('r2');
      await page.getByLabel('Stream').selectOption('stderr');
      await page.getByRole('button', { name: 'Search', exact: true }).click();
      await line(page, '/after-the-rollout').waitFor();
      const texts = await lines(page).allInnerTexts();
      assert.ok(
        texts.every((text) => /\br2 /.test(text) && text.includes('GET')),
        texts.join(''),
      );
      const [entry] = (await shop.api('GET', '/environments/production/logs?search=after-the-rollout')).body.data;
      await page.getByLabel('Instance').fill(entry.instance);
      await page.getByRole('button', { name: 'Search', exact: true }).click();
      await page.waitForFunction(() => location.search.includes('instance='));
      await line(page, '/after-the-rollout').waitFor();
    });

    test('the time of a line is a link to it, with what is around it, though others have come since', async (c) => {
      const page = await openLogs(c);
      await line(page, '/basket/20 ').getByRole('link').click();
      const marked = page.locator('span.log.marked');
      await marked.waitFor();
      const address = page.url();
      for (let n = 0; n < 20; n++) await print(`/later/${n}`);
      await stored('later/19');
      const other = await openLogs(c, new URL(address).search);
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

    test('following shows each line once as it comes, over a rollout, also of a search', async (c) => {
      const page = await openLogs(c);
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
});
