// The gallery in a real browser: every stream plays to its end in both forms, quality changes, seeking, keyboard, links.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type { CatalogueDocument } from '../../src/catalogue/document.ts';
import { noBrowser } from '../helpers/browser.ts';
import { collectCleanup, makeBuild, makeSource, quickCodec, writeManifest, writeSource } from './fixture.ts';
import { ended, launchPlayer, openPlayer, play, ready } from './player.ts';
import { startOrigin } from './servers.ts';

const renditions = `renditions:
  - { label: 90p, width: 160, height: 90, video_kbps: 100, audio_kbps: 32 }
  - { label: 180p, width: 320, height: 180, video_kbps: 250, audio_kbps: 48 }
`;

/** Upright, in two languages, one of them in 5.1, with captions in both, and chapters. */
async function makeTalk(folder: string): Promise<string> {
  const six = `aevalsrc=${Array(6).fill('0.1*sin(1900*t)').join('|')}:c=5.1:d=4`;
  const inputs = ['testsrc2=s=90x160:r=25:d=4', six, 'sine=600:d=4'].flatMap((each) => ['-f', 'lavfi', '-i', each]);
  const maps = [
    '-map',
    '0',
    '-map',
    '1',
    '-map',
    '2',
    '-metadata:s:a:0',
    'language=eng',
    '-metadata:s:a:1',
    'language=spa',
  ];
  await writeSource(join(folder, 'talk.mkv'), [...inputs, ...maps, ...quickCodec, '-c:a', 'flac']);
  const vtt = (text: string) => `WEBVTT\n\n00:00.000 --> 00:04.000\n${text}\n`;
  await writeFile(join(folder, 'en.vtt'), vtt('Hello'));
  await writeFile(join(folder, 'es.vtt'), vtt('Hola'));
  await writeFile(join(folder, 'chapters.txt'), '0:00 Opening\n0:01 The <middle>\n0:03 End\n');
  const captions = '[{ source: en.vtt, language: en, default: yes }, { source: es.vtt, language: es }]';
  return `title: Über Wasser, source: talk.mkv, progressive: [180p], captions: ${captions}, chapters: chapters.txt`;
}

describe('gallery', { skip: noBrowser }, () => {
  const cleanup = collectCleanup();
  after(cleanup.undoAll);
  let browser: Browser;
  let base = '';
  let segmented = '';
  let published: CatalogueDocument;

  before(async () => {
    const streams = ['{ id: film, title: A film, source: film.mp4, progressive: [90p, 180p] }'];
    const one = await makeBuild(cleanup);
    await makeSource(one.folder, 'film.mp4', { seconds: 8, size: '320x180', rate: '25', output: quickCodec });
    await makeSource(one.folder, 'clip.mp4', { seconds: 2, size: '320x180', rate: '25', silent: true, hue: 90 });
    const clip = '{ id: clip, title: "Clip <b>&", source: clip.mp4, progressive: [90p, 180p], hls: no }';
    const talk = await makeTalk(one.folder);
    const more = [`{ id: talk, ${talk} }`, `{ id: talk-file, ${talk}, hls: no }`];
    await writeManifest(one.folder, [...streams, clip, ...more], renditions);
    published = (await one.build()).document;
    base = await startOrigin(cleanup, one.paths.site);
    const other = await makeBuild(cleanup);
    const source = streams[0]!.replace('film.mp4', join(one.folder, 'film.mp4'));
    await writeManifest(other.folder, [source], renditions);
    await other.build({ hlsLayout: 'segments' });
    segmented = await startOrigin(cleanup, other.paths.site);
    browser = await launchPlayer();
    cleanup.after(() => browser.close());
  });

  const openPage = (t: { after(undo: () => unknown): void }, url: string) => openPlayer(browser, t, url);
  const currentTime = (page: Page) => page.evaluate(() => document.querySelector('video')!.currentTime);
  const width = (page: Page) => page.evaluate(() => document.querySelector('video')!.videoWidth);

  /** The other quality begins at the next key frame. Until the choice is made the stream hardly moves, so there is one. */
  const chooseOncePlaying = async (label: string) => {
    const video = document.querySelector('video')!;
    const quality = document.querySelector<HTMLSelectElement>('#quality')!;
    const plays = new Promise((resolve) => video.addEventListener('timeupdate', resolve, { once: true }));
    video.playbackRate = 0.1;
    await video.play();
    await plays;
    quality.value = [...quality.options].find(({ text }) => text === label)!.value;
    quality.dispatchEvent(new Event('change'));
    video.playbackRate = 1;
  };

  for (const [form, address] of [
    ['HLS by ranges', () => `${base}/#/film`],
    ['HLS by segments', () => `${segmented}/#/film`],
    ['a stream without HLS', () => `${base}/#/clip`],
  ] as const) {
    test(`${form} plays to its end without an error`, async (t) => {
      const { page, wrong } = await openPage(t, address());
      await ready(page);
      await play(page);
      await ended(page);
      assert.deepEqual(wrong, []);
      assert.equal(await page.isVisible('#player-error'), false);
    });
  }

  test('every progressive file plays to its end without an error', async (t) => {
    const { page, wrong } = await openPage(t, base);
    const paths = published.streams.flatMap((stream) => Object.values(stream.progressive));
    assert.equal(paths.length, 6);
    const outcomes = await page.evaluate(
      (all) =>
        Promise.all(
          all.map((path) => {
            const video = Object.assign(document.createElement('video'), { src: path, muted: true });
            video.playbackRate = 4;
            document.body.append(video);
            return new Promise<string>((resolve) => {
              video.onended = () => resolve('ended');
              video.onerror = () => resolve(`error ${video.error?.code} ${path}`);
              video.play().catch((error: Error) => resolve(error.message));
            });
          }),
        ),
      paths,
    );
    assert.deepEqual(new Set(outcomes), new Set(['ended']));
    assert.deepEqual(wrong, []);
  });

  test('the cards show what the document has, as text', async (t) => {
    const { page } = await openPage(t, base);
    await page.waitForSelector('.card');
    const titles = ['A film', 'Clip <b>&', 'Über Wasser', 'Über Wasser'];
    assert.deepEqual(await page.locator('.card .title').allTextContents(), titles);
    assert.deepEqual(await page.locator('.card .badge').allTextContents(), ['0:08', '0:02', '0:04', '0:04']);
    const facts = await page.locator('.card .sub').allTextContents();
    assert.deepEqual(facts.slice(0, 3), ['180p', '180p', '90p · English, Español · CC']);
    await page.locator('.card').last().scrollIntoViewIfNeeded();
    await page.waitForFunction(() => [...document.images].every((image) => image.complete && image.naturalWidth > 0));
    assert.deepEqual(
      await page.locator('.picture').evaluateAll((all) => all.map((each) => each.classList.contains('upright'))),
      [false, false, true, true],
    );
    const shown = () => page.locator('.card:visible').count();
    for (const [query, count, status] of [
      ['clip', 1, '1 stream of 4'],
      ['uber spanish', 0, 'Nothing matches.'],
      ['uber espanol', 2, '2 streams of 4'],
      ['nothing like it', 0, 'Nothing matches.'],
      ['', 4, ''],
    ] as const) {
      await page.fill('#search', query);
      assert.deepEqual([await shown(), await page.textContent('#status')], [count, status], query);
    }
  });

  test('a search over a thousand streams answers a key at once', async (t) => {
    const { page, wrong } = await openPage(t, 'about:blank');
    const [film] = published.streams;
    const streams = Array.from({ length: 1000 }, (_, i) => ({ ...film!, id: `film-${i}`, title: `Take ${i}` }));
    await page.route('**/api/streams.json', (route) => route.fulfill({ json: { ...published, streams } }));
    await page.goto(base);
    await page.waitForSelector('.card');
    await page.fill('#search', 'take 77');
    assert.equal(await page.locator('.card:visible').count(), 19);
    assert.equal(await page.textContent('#status'), '19 streams of 1,000');
    // The processor time that the page takes until it is laid out: others may have the processors meanwhile.
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
    const busy = async () => {
      const { metrics } = await devtools.send('Performance.getMetrics');
      const parts = metrics.filter(({ name }) => /^(Script|RecalcStyle|Layout)Duration$/.test(name));
      return parts.reduce((sum, { value }) => sum + value * 1000, 0);
    };
    const work: number[] = [];
    for (const query of ['take', 'take 5', '', '99']) {
      const before = await busy();
      await page.evaluate((text) => {
        const search = document.querySelector<HTMLInputElement>('#search')!;
        search.value = text;
        search.dispatchEvent(new Event('input'));
        document.querySelector<HTMLElement>('#grid')!.offsetHeight;
      }, query);
      work.push((await busy()) - before);
    }
    assert.ok(Math.min(...work) < 100, `${work} ms`);
    assert.deepEqual(wrong, []);
  });

  test('quality changes while it plays: HLS by level, files by label', async (t) => {
    const { page, wrong } = await openPage(t, `${base}/#/film`);
    await ready(page);
    const qualities = await page.locator('#quality option').allTextContents();
    assert.match(qualities[0]!, /^Auto( \(\d+p\))?$/);
    assert.deepEqual(qualities.slice(1), ['180p', '90p']);
    // Near the end too, where all that is left is loaded already.
    for (const [label, at, expected] of [
      ['90p', 0, 160],
      ['180p', 5, 320],
    ] as const) {
      await page.evaluate((seconds) => {
        const video = document.querySelector('video')!;
        video.pause();
        video.currentTime = seconds;
      }, at);
      await page.waitForFunction(() => {
        const { buffered, duration } = document.querySelector('video')!;
        return buffered.length === 1 && duration - buffered.end(0) < 0.1;
      });
      await page.evaluate(chooseOncePlaying, label);
      await page.waitForFunction((wanted) => document.querySelector('video')!.videoWidth === wanted, expected);
    }
    await page.goto(`${base}/#/clip`);
    await page.waitForFunction(() => document.querySelector('video')!.currentSrc.includes('/media/clip/'));
    await ready(page);
    assert.equal(await width(page), 320);
    await page.click('#settings-open');
    await page.selectOption('#quality', { label: '90p' });
    await page.waitForFunction(() => document.querySelector('video')!.videoWidth === 160);
    assert.deepEqual(wrong, []);
  });

  test('seeking by pointer and keyboard, with a thumbnail on the bar', async (t) => {
    const { page, wrong } = await openPage(t, `${base}/#/film`);
    await ready(page);
    const box = (await page.locator('#seek').boundingBox())!;
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.waitForFunction(() => !document.getElementById('preview')!.hidden);
    assert.match(
      await page.locator('#preview-image').evaluate((image) => getComputedStyle(image).backgroundImage),
      /thumbs-001\.jpg/,
    );
    assert.equal(await page.textContent('#preview-time'), '0:04');
    await page.mouse.down();
    await page.mouse.up();
    await page.waitForFunction(() => Math.abs(document.querySelector('video')!.currentTime - 4) < 0.3);
    await page.locator('#player').focus();
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction(() => document.querySelector('video')!.currentTime < 0.5);
    await page.locator('#seek').focus();
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(() => Math.abs(document.querySelector('video')!.currentTime - 5) < 0.5);
    await page.keyboard.press('k');
    await page.waitForFunction(() => !document.querySelector('video')!.paused);
    assert.deepEqual(wrong, []);
  });

  /** What the captions say now. */
  const caption = (page: Page) =>
    page.evaluate(() => {
      const shown = [...document.querySelector('video')!.textTracks].filter(({ mode }) => mode === 'showing');
      return shown.flatMap(({ activeCues }) => [...(activeCues ?? [])].map((cue) => (cue as VTTCue).text)).join();
    });
  const captionIs = async (page: Page, text: string) => {
    const deadline = Date.now() + 20_000;
    while ((await caption(page)) !== text && Date.now() < deadline) await page.waitForTimeout(50);
    assert.equal(await caption(page), text);
  };

  for (const [form, id] of [
    ['HLS', 'talk'],
    ['a file', 'talk-file'],
  ] as const) {
    test(`captions and speed of ${form} are chosen from the menu and by key, and remembered`, async (t) => {
      const { page, wrong } = await openPage(t, `${base}/#/${id}?t=2`);
      await ready(page);
      await captionIs(page, 'Hello');
      assert.equal(await page.getAttribute('#captions-on', 'aria-pressed'), 'true');
      await page.locator('#player').focus();
      await page.keyboard.press('s');
      assert.deepEqual(await page.locator('#captions option').allTextContents(), ['Off', 'English', 'Español']);
      await page.selectOption('#captions', { label: 'Español' });
      await captionIs(page, 'Hola');
      await page.selectOption('#speed', { label: '1.5 ×' });
      await page.keyboard.press('Escape');
      assert.equal(await page.isVisible('#settings'), false);
      assert.equal(await page.isVisible('#watch'), true, 'Escape closes the menu first');
      await page.locator('#player').focus();
      await page.keyboard.press('c');
      await captionIs(page, '');
      await page.keyboard.press('c');
      await captionIs(page, 'Hello');
      await page.keyboard.press('>');
      assert.equal(await page.evaluate(() => document.querySelector('video')!.playbackRate), 1.75);
      await page.keyboard.press('c');
      await page.reload();
      await ready(page);
      await captionIs(page, '');
      assert.equal(await page.evaluate(() => document.querySelector('video')!.playbackRate), 1.75);
      assert.deepEqual(wrong, []);
    });
  }

  test('the language changes while it plays', async (t) => {
    const { page, wrong } = await openPage(t, `${base}/#/talk`);
    await ready(page);
    await page.click('#settings-open');
    assert.deepEqual(await page.locator('#language option').allTextContents(), ['English', 'Español']);
    assert.equal(await page.locator('#quality option').count(), 2, 'the variant with 5.1 is no quality of its own');
    const loaded = page.waitForResponse((response) => /\/a-\d+-1\.mp4$/.test(response.url()));
    await page.selectOption('#language', { label: 'Español' });
    assert.ok((await loaded).ok());
    await play(page);
    await ended(page);
    assert.deepEqual(wrong, []);
  });

  test('chapters are listed, marked and reached; an upright stream has an upright box', async (t) => {
    const { page, wrong } = await openPage(t, `${base}/#/talk?t=1`);
    await ready(page);
    const rows = await page.locator('#chapter-list button').allTextContents();
    assert.deepEqual(rows, ['0:00Opening', '0:01The <middle>', '0:03End']);
    await page.waitForFunction(() => document.getElementById('chapter')!.textContent === 'The <middle>');
    assert.equal(await page.locator('#marks i').count(), 2);
    await page.locator('#player').focus();
    await page.keyboard.press('n');
    await page.waitForFunction(() => document.querySelector('video')!.currentTime >= 3);
    assert.equal(await page.locator('#chapter-list [aria-current]').textContent(), '0:03End');
    await page.keyboard.press('p');
    await page.waitForFunction(() => document.querySelector('video')!.currentTime < 3);
    const { width, height } = (await page.locator('#player').boundingBox())!;
    assert.ok(Math.abs(width / height - 90 / 160) < 0.02, `${width} × ${height}`);
    const facts = (await page.textContent('#watch-facts'))!;
    assert.match(facts, /^0:04 · 90p · English, Español · Captions: English, Español · [\d.]+ kB as a file$/);
    assert.deepEqual(wrong, []);
  });

  test('the link that is copied leads to the moment; the keys are listed', async (t) => {
    const { page, wrong } = await openPage(t, `${base}/#/film?t=5`);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.waitForFunction(() => document.getElementById('share')!.textContent === 'Copy link at 0:05');
    await page.click('#share');
    await page.waitForFunction(() => document.getElementById('announce')!.textContent === 'Copied');
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `${base}/#/film?t=5`);
    await page.keyboard.press('?');
    assert.match((await page.textContent('#keys'))!, /Picture in picture/);
    await page.keyboard.press('Escape');
    assert.equal(await page.isVisible('#keys'), false);
    assert.equal(await page.isVisible('#watch'), true);
    assert.deepEqual(wrong, []);
  });

  test('the picture stands apart, by button and by key, until the stream is closed', async (t) => {
    const { page, wrong } = await openPage(t, `${base}/#/film`);
    await ready(page);
    const isApart = (apart: boolean) =>
      page.waitForFunction((wanted) => (document.pictureInPictureElement !== null) === wanted, apart);
    await page.click('#apart');
    await isApart(true);
    await page.click('#apart');
    await isApart(false);
    await page.locator('#player').focus();
    await page.keyboard.press('i');
    await isApart(true);
    await page.click('#close');
    await isApart(false);
    assert.deepEqual(wrong, []);
  });

  test('by keyboard alone: to a card, into the stream, back to the card', async (t) => {
    const { page } = await openPage(t, base);
    await page.waitForSelector('.card');
    await page.locator('.card').first().focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('#watch:not([hidden])');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'player');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => document.getElementById('watch')!.hidden);
    assert.equal(await page.evaluate(() => (document.activeElement as HTMLElement).dataset.id), 'film');
  });

  test('a link leads to a stream and a time; a link to nothing says so', async (t) => {
    const { page } = await openPage(t, `${base}/#/film?t=5`);
    await ready(page);
    await page.waitForFunction(() => document.querySelector('video')!.currentTime >= 5);
    assert.ok((await currentTime(page)) < 6);
    assert.equal(await page.title(), 'A film · Catalogue');
    await page.goto(`${base}/#/none`);
    await page.waitForFunction(() => document.getElementById('status')!.textContent!.includes('no stream'));
  });

  test('snippets hold complete addresses that answer', async (t) => {
    const { page } = await openPage(t, `${base}/#/film`);
    await page.click('summary');
    const texts = await page.locator('.snippet code').allTextContents();
    assert.equal(texts[0], `${base}/media/film/hls/main.m3u8`);
    for (const url of texts.slice(0, 3)) assert.equal((await fetch(url)).status, 200);
  });

  test('a network that changes ends neither the first load nor what plays', async (t) => {
    const { page } = await openPage(t, 'about:blank');
    const lost = new Set<string>();
    // Each of them gets no answer the first time. Scripts of the page itself are the browser's to load again.
    await page.route(/streams\.json|hls\.min\.js|\/media\//, (route) => {
      const url = route.request().url() + (route.request().headers().range ?? '');
      if (lost.has(url)) return route.continue();
      lost.add(url);
      return route.abort('failed');
    });
    for (const id of ['film', 'clip']) {
      await page.goto(`${base}/#/${id}`);
      await page.waitForFunction(
        (text) => document.getElementById('watch-title')!.textContent!.startsWith(text),
        id === 'film' ? 'A film' : 'Clip',
      );
      await ready(page);
      await play(page);
      await ended(page);
      assert.equal(await page.isVisible('#player-error'), false);
    }
    const missed = [/streams\.json/, /hls\.min\.js/, /main\.m3u8/, /film\/hls\/.*\.mp4/, /clip\/.*\.mp4/];
    for (const name of missed)
      assert.ok(
        [...lost].some((url) => name.test(url)),
        `${name} was lost once`,
      );
  });

  test('the page asks for nothing outside its own files, and runs under its own policy', async () => {
    const html = await (await fetch(base)).text();
    assert.match(html, /Content-Security-Policy/);
    assert.doesNotMatch(html, /<script(?![^>]*src=)|\sstyle=|\son\w+=|https?:\/\//);
    const script = await (await fetch(`${base}/gallery/hls.min.js`)).text();
    const shipped = await readFile(join(import.meta.dirname, '../../node_modules/hls.js/dist/hls.min.js'), 'utf8');
    const digest = (text: string) =>
      createHash('sha256')
        .update(text.replace(/\n\/\/# sourceMappingURL.*\s*$/, '\n'))
        .digest('hex');
    assert.equal(digest(script), digest(shipped));
  });
});
