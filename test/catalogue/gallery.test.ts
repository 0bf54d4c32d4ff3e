// The gallery in a real browser: every stream plays to its end in both forms, quality changes, seeking, keyboard, links.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type { CatalogueDocument } from '../../src/catalogue/document.ts';
import { noBrowser } from '../helpers/browser.ts';
import { collectCleanup, makeBuild, makeSource, quickCodec, writeManifest } from './fixture.ts';
import { ended, launchPlayer, openPlayer, play, ready } from './player.ts';
import { startOrigin } from './servers.ts';

const renditions = `renditions:
  - { label: 90p, width: 160, height: 90, video_kbps: 100, audio_kbps: 32 }
  - { label: 180p, width: 320, height: 180, video_kbps: 250, audio_kbps: 48 }
`;

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
    await writeManifest(one.folder, [...streams, clip], renditions);
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
    assert.equal(paths.length, 4);
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
    assert.deepEqual(await page.locator('.card .title').allTextContents(), ['A film', 'Clip <b>&']);
    assert.deepEqual(await page.locator('.card .badge').allTextContents(), ['0:08', '0:02']);
    await page.waitForFunction(() => [...document.images].every((image) => image.complete && image.naturalWidth > 0));
    await page.fill('#search', 'clip');
    assert.equal(await page.locator('.card').count(), 1);
    await page.fill('#search', 'nothing like it');
    assert.equal(await page.textContent('#status'), 'Nothing matches.');
  });

  test('quality changes while it plays: HLS by level, files by label', async (t) => {
    const { page, wrong } = await openPage(t, `${base}/#/film`);
    await ready(page);
    assert.deepEqual(await page.locator('#quality option').allTextContents(), ['Auto', '180p', '90p']);
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
