// The site at /docs, in a browser and without one.
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { routes } from '../../src/contract/api.ts';
import { renderMarkdown } from '../../src/http/docs/markdown.ts';
import { startApp, type TestApp } from '../helpers/app.ts';
import { keepPicture, launchBrowser, noBrowser, openPage } from '../helpers/browser.ts';

const noLinks = () => null;

test('Markdown: blocks, marks and code; whatever is in it is escaped', () => {
  const html = (source: string) => renderMarkdown(source, (href) => (href === 'x.md' ? '/x' : null)).html;
  assert.equal(html('# A `b` <c>'), '<h1>A <code>b</code> &lt;c&gt;</h1>');
  assert.equal(html('## One two!'), '<h2 id="one-two">One two!</h2>');
  assert.equal(
    html('# T\na **b** [`c`](x.md) [d](y.md)\ne_f_g _h_'),
    '<h1>T</h1>\n<p>a <strong>b</strong> <a href="/x"><code>c</code></a> d e_f_g <em>h</em></p>',
  );
  assert.equal(html('# T\n\n- a\n  b\n- c\n  - d\n'), '<h1>T</h1>\n<ul><li>a b</li><li>c<ul><li>d</li></ul></li></ul>');
  assert.equal(html('# T\n\n```sh\n# **x** <y>\n```'), '<h1>T</h1>\n<pre><code># **x** &lt;y&gt;</code></pre>');
  const table = renderMarkdown('# T\n\n| a | b |\n|---|---|\n| `X_Y` | c \\| `d\\|e` |\n', noLinks);
  assert.match(table.html, /<tr id="x_y"><td><code>X_Y<\/code><\/td><td>c \| <code>d\|e<\/code>/);
  assert.deepEqual(table.sections.at(-1)!.title, 'X_Y');
});

describe('the site', () => {
  let t: TestApp;
  before(async () => {
    t = await startApp();
  });
  after(() => t.stop());
  const get = async (path: string) => {
    const response = await fetch(t.url + path);
    return { status: response.status, text: await response.text(), headers: response.headers };
  };

  test('every page of docs/ is there, and every link within the site leads to a page and a place on it', async () => {
    const guides = globSync('docs/**/*.md').map((file) => `/docs/guides/${file.slice('docs/'.length, -'.md'.length)}`);
    const pages = new Map<string, string>();
    for (const path of ['/docs', '/docs/reference', '/docs/errors', '/docs/search?q=canary', ...guides]) {
      const { status, text, headers } = await get(path);
      assert.equal(status, 200, path);
      assert.match(headers.get('content-security-policy')!, /default-src 'none'/);
      pages.set(path, text);
    }
    for (const [path, text] of pages) {
      for (const [, href] of text.matchAll(/<a href="([^"]+)"/g)) {
        const [page, anchor] = href!.split('#') as [string, string?];
        const target = page === '' ? path : page;
        if (!target.startsWith('/docs')) continue;
        assert.ok(pages.has(target), `${path}: ${href}`);
        if (anchor) assert.ok(pages.get(target)!.includes(`id="${anchor}"`), `${path}: ${href}`);
      }
    }
    for (const { name } of routes) {
      const section = pages.get('/docs/reference')!.split(`<section id="${name.replaceAll('.', '-')}">`)[1]!;
      for (const language of ['curl', 'TypeScript', 'Python'])
        assert.ok(section.split('</section>')[0]!.includes(`<summary>${language}</summary>`), `${name}: ${language}`);
    }
  });

  test('what is not there is a 404, and what is searched for is shown as text', async () => {
    for (const path of ['/docs/guides/nothing', '/docs/guides/..%2f..%2fREADME', '/docs/guides/../../package.json'])
      assert.equal((await get(path)).status, 404, path);
    const { text } = await get(`/docs/search?q=${encodeURIComponent('"><script>x</script>')}`);
    assert.ok(!text.includes('<script>'));
    assert.match((await get('/docs/search?q=a&q=b')).text, /for “a b”/);
  });

  test('in Chromium the search finds an error code, a setting, a route and a command', {
    skip: noBrowser,
  }, async () => {
    const browser: Browser = await launchBrowser();
    try {
      const { page, wrong } = await openPage(browser, { viewport: { width: 1024, height: 800 } });
      await page.goto(`${t.url}/docs`);
      await keepPicture(page, 'docs');
      const searches: [words: string, href: string][] = [
        ['deployment_in_progress', '/docs/errors#deployment_in_progress'],
        ['SLUICE_ROUTER_PORT', '/docs/guides/settings#sluice_router_port'],
        ['POST /v1/projects/{id}/deployments', '/docs/reference#deployments-create'],
        ['sluice rollback', '/docs/guides/cli#sluice-rollback'],
      ];
      for (const [words, href] of searches) {
        await page.getByRole('searchbox').fill(words);
        await page.getByRole('button', { name: 'Search' }).click();
        const first = page.locator('ol a').first();
        assert.equal(await first.getAttribute('href'), href, words);
        await first.click();
        assert.ok(page.url().endsWith(href), words);
        await page.locator(':target').waitFor({ state: 'attached' });
      }
      await page.goto(`${t.url}/docs/reference#deployments-create`);
      await page.locator('#deployments-create summary', { hasText: 'Python' }).click();
      assert.ok(await page.locator('#deployments-create', { hasText: 'urllib.request' }).isVisible());
      await keepPicture(page, 'docs-reference');
      assert.deepEqual(wrong, []);
    } finally {
      await browser.close();
    }
  });
});
