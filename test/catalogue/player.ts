// The gallery's player in a real Chromium.
import type { Browser, Page } from 'playwright-core';
import { launchBrowser, watch } from '../helpers/browser.ts';

export const launchPlayer = (): Promise<Browser> => launchBrowser(['--autoplay-policy=no-user-gesture-required']);

/** A page, and what goes wrong on it: errors of the page and of the video, answers of 400 and above. */
export async function openPlayer(
  browser: Browser,
  t: { after(undo: () => unknown): void },
  url: string,
): Promise<{ page: Page; wrong: string[] }> {
  const page = await browser.newPage({ viewport: { width: 1000, height: 800 } });
  t.after(() => page.close());
  const wrong = watch(page);
  await page.goto(url);
  return { page, wrong };
}

/** Plays four times as fast; an error of the video is one of the page. */
export const play = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const video = document.querySelector('video')!;
    video.onerror = () => console.error(`video: ${video.error?.message}`);
    video.muted = true;
    video.playbackRate = 4;
    return video.play();
  });

export const ready = (page: Page) => page.waitForFunction(() => document.querySelector('video')!.readyState >= 3);

export const ended = (page: Page) =>
  page.waitForFunction(() => document.querySelector('video')!.ended, null, { timeout: 60_000 });
