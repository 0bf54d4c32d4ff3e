// Three players that are not ours, in Chromium, on one stream with everything: each plays, seeks twenty times, and changes its
// quality, language and captions, without an error. They come from npm into a folder of their own: 128 MB that nobody needs to
// run the tests.
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { installDir } from '../../src/lib/install.ts';
import {
  type Cleanup,
  makeBuild,
  makeFolder,
  quickCodec,
  writeManifest,
  writeSource,
} from '../../test/catalogue/fixture.ts';
import { launchPlayer } from '../../test/catalogue/player.ts';
import { startOrigin } from '../../test/catalogue/servers.ts';
import { judge } from './in-turns.ts';

const packages = ['shaka-player@5.2.12', 'video.js@8.24.1'];
const SECONDS = 60;
const FLASH_S = 1;
/** Seeks stay below, so that later parts are not loaded yet when quality and language change. */
const SEEKS_WITHIN = 20;
const SEEKS = 20;

const renditions = `renditions:
  - { label: 90p, width: 160, height: 90, video_kbps: 100, audio_kbps: 32 }
  - { label: 180p, width: 320, height: 180, video_kbps: 300, audio_kbps: 48 }
`;

/** Two languages, one of them in 5.1, two rungs, captions in two languages. */
async function publishFilm(cleanup: Cleanup): Promise<string> {
  const build = await makeBuild(cleanup);
  const { folder } = build;
  const six = `aevalsrc=${Array(6).fill('0.1*sin(1900*t)').join('|')}:c=5.1:d=${SECONDS}`;
  const box = (colour: string, when: string) => `drawbox=t=fill:color=${colour}:enable='${when}'`;
  const flash = [box('black', `lt(t,${FLASH_S})`), box('white', `between(t,${FLASH_S},${FLASH_S}+0.3)`)].join(',');
  const picture = `testsrc2=s=320x180:r=25:d=${SECONDS},${flash}`;
  const inputs = [picture, six, `sine=600:d=${SECONDS}`].flatMap((each) => ['-f', 'lavfi', '-i', each]);
  const maps = ['-map', '0', '-map', '1', '-map', '2', '-metadata:s:a:0', 'language=eng'];
  const codecs = ['-metadata:s:a:1', 'language=spa', ...quickCodec, '-c:a', 'flac'];
  await writeSource(join(folder, 'film.mkv'), [...inputs, ...maps, ...codecs]);
  for (const [name, text] of [
    ['en', 'Hello'],
    ['es', 'Hola'],
  ] as const)
    await writeFile(join(folder, `${name}.vtt`), `WEBVTT\n\n00:00.000 --> 01:00.000\n${text}\n`);
  const captions = '[{ source: en.vtt, language: en }, { source: es.vtt, language: es }]';
  await writeManifest(folder, [`{ id: film, title: T, source: film.mkv, captions: ${captions} }`], renditions);
  await build.build();
  return startOrigin(cleanup, build.paths.site);
}

/** What each player calls the same things; these run in the page. `player` is what `open` gave. */
interface Adapter {
  script: string;
  open: string;
  /** These take a height or a language as `value`. */
  quality: string;
  language: string;
  captions: string;
}

const adapters: Record<string, Adapter> = {
  'hls.js': {
    script: 'hls.js/dist/hls.min.js',
    open: `const player = new Hls({ maxBufferLength: 8 });
      player.on('hlsError', (_, data) => data.fatal && window.wrong.push(data.details));
      player.loadSource(url); player.attachMedia(video);
      await new Promise((done) => player.on('hlsManifestParsed', done));
      return player;`,
    quality: 'player.currentLevel = player.levels.findIndex((level) => level.height === value);',
    language: 'player.audioTrack = player.audioTracks.findIndex((track) => track.lang === value);',
    captions: 'player.subtitleTrack = player.subtitleTracks.findIndex((track) => track.lang === value);',
  },
  'Shaka Player': {
    script: 'shaka-player/dist/shaka-player.compiled.js',
    open: `shaka.polyfill.installAll();
      const player = new shaka.Player();
      player.addEventListener('error', ({ detail }) => window.wrong.push('shaka ' + detail.code));
      await player.attach(video);
      player.configure({ streaming: { bufferingGoal: 8 } });
      await player.load(url);
      return player;`,
    quality: `player.configure({ abr: { enabled: false } });
      const playing = player.getVariantTracks().find((track) => track.active);
      player.selectVariantTrack(player.getVariantTracks().find((track) =>
        track.height === value && track.language === playing.language), true);`,
    language: `const { height } = player.getVariantTracks().find((track) => track.active);
      player.selectVariantTrack(player.getVariantTracks().find((track) =>
        track.height === height && track.language === value), true);`,
    captions: `player.selectTextTrack(player.getTextTracks().find((track) => track.language === value));
      player.setTextTrackVisibility?.(true);`,
  },
  'video.js': {
    script: 'video.js/dist/video.min.js',
    open: `videojs.Vhs.GOAL_BUFFER_LENGTH = 6; videojs.Vhs.MAX_GOAL_BUFFER_LENGTH = 6;
      const player = videojs(video, { html5: { vhs: { overrideNative: true } } });
      player.on('error', () => window.wrong.push('video.js ' + player.error().message));
      player.src({ src: url, type: 'application/vnd.apple.mpegurl' });
      await new Promise((done) => player.one('loadedmetadata', done));
      return player;`,
    quality: `const levels = player.qualityLevels();
      for (let i = 0; i < levels.length; i++) levels[i].enabled = levels[i].height === value;`,
    language: `const tracks = player.audioTracks();
      for (let i = 0; i < tracks.length; i++) tracks[i].enabled = tracks[i].language === value;`,
    captions: `const tracks = player.textTracks();
      for (let i = 0; i < tracks.length; i++)
        if (tracks[i].kind === 'subtitles') tracks[i].mode = tracks[i].language === value ? 'showing' : 'disabled';`,
  },
};

const scripts = ['open', 'quality', 'language', 'captions'] as const;

/** The page knows the player by four functions. */
function pageFor(adapter: Adapter): string {
  const functions = scripts.map((name) => {
    const head = name === 'open' ? 'async (video, url)' : '(player, value)';
    return `${name}: ${head} => { ${adapter[name]} }`;
  });
  return `<!doctype html><body><video id="video" muted playsinline></video>
    <script>window.wrong = [];</script><script src="/player.js"></script>
    <script>window.adapter = { ${functions.join(',\n')} };</script>`;
}

/** Plays, slowly so that a busy machine shows every frame, and gives the time of the first white picture. */
const flashTime = `new Promise((resolve) => {
  const video = document.querySelector('video');
  const canvas = new OffscreenCanvas(1, 1).getContext('2d');
  const look = (_, { mediaTime }) => {
    canvas.drawImage(video, 0, 0, 1, 1);
    if (canvas.getImageData(0, 0, 1, 1).data[0] > 200) {
      video.playbackRate = 1;
      resolve(mediaTime);
    } else video.requestVideoFrameCallback(look);
  };
  video.requestVideoFrameCallback(look);
  video.muted = true;
  video.playbackRate = 0.5;
  void video.play();
})`;

async function tryPlayer(page: Page, name: string, url: string): Promise<string[]> {
  const steps: string[] = [];
  const pageText = (fn: string) => page.evaluate(fn);
  const until = async (what: string, condition: string) => {
    steps.push(what);
    await page.waitForFunction(condition, null, { timeout: 30_000 });
  };
  const media = `document.querySelector('video')`;
  try {
    await pageText(`adapter.open(${media}, '${url}').then((player) => { window.player = player; })`);
    steps.push('flash');
    const shownAt = (await pageText(flashTime)) as number;
    if (Math.abs(shownAt - FLASH_S) > 1 / 25 + 0.001) throw new Error(`is shown at ${shownAt} s, not at ${FLASH_S}`);
    await until('play', `${media}.currentTime > 0.5`);
    for (let i = 0; i < SEEKS; i++) {
      const to = ((i * 7.3) % SEEKS_WITHIN).toFixed(2);
      await pageText(`${media}.currentTime = ${to}`);
      await until(
        `seek ${i + 1} to ${to}`,
        `!${media}.seeking && ${media}.currentTime >= ${to} && ${media}.readyState >= 3`,
      );
    }
    for (const [height, width, at] of [
      [90, 160, 26],
      [180, 320, 33],
    ]) {
      await pageText(`adapter.quality(player, ${height}); ${media}.currentTime = ${at}; ${media}.play()`);
      await until(`quality ${height}p`, `${media}.videoWidth === ${width}`);
    }
    for (const [language, file, at] of [
      ['es', /a-\w+-1\.mp4$/, 40],
      ['en', /a-[a-z0-9]+\.mp4$/, 50],
    ] as const) {
      steps.push(`language ${language}`);
      const spoken = page.waitForResponse((response) => file.test(response.url()), { timeout: 30_000 });
      await pageText(`adapter.language(player, '${language}'); ${media}.currentTime = ${at}`);
      await spoken;
      await until(
        `language ${language} plays`,
        `!${media}.seeking && ${media}.currentTime > ${at} && ${media}.readyState >= 3`,
      );
    }
    for (const [language, text] of [
      ['en', 'Hello'],
      ['es', 'Hola'],
    ] as const) {
      await pageText(`${media}.currentTime = 5; adapter.captions(player, '${language}'); ${media}.play()`);
      const shown = `[...${media}.textTracks].filter((track) => track.mode !== 'disabled').some((track) => [...(track.activeCues ?? [])].some((cue) => cue.text === '${text}'))`;
      await until(`captions ${language}`, `${shown} || document.body.textContent.includes('${text}')`);
    }
    await until(
      'on to the end',
      `(${media}.playbackRate = 4, ${media}.ended || ${media}.currentTime > ${SECONDS - 0.5})`,
    );
  } catch (error) {
    return [`${name}: ${steps.at(-1)}: ${(error as Error).message.split('\n')[0]}`];
  }
  return [];
}

export async function tryPlayers(cleanup: Cleanup): Promise<void> {
  const tools = await makeFolder(cleanup);
  await promisify(execFile)('npm', ['install', '--prefix', tools, '--no-audit', '--no-fund', ...packages]);
  const base = await publishFilm(cleanup);
  const browser = await launchPlayer();
  cleanup.after(() => browser.close());
  for (const [name, adapter] of Object.entries(adapters)) {
    const page = await browser.newPage();
    const wrong: string[] = [];
    page.on('pageerror', (error) => wrong.push(error.message));
    page.on('response', (response) => response.status() >= 400 && wrong.push(`${response.status()} ${response.url()}`));
    const root = name === 'hls.js' ? installDir : tools;
    const script = await readFile(join(root, 'node_modules', adapter.script), 'utf8');
    const folder = join(root, 'node_modules', adapter.script.split('/')[0]!);
    const { version } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { version: string };
    await page.route('**/player.js', (route) => route.fulfill({ contentType: 'text/javascript', body: script }));
    await page.route('**/try.html', (route) => route.fulfill({ contentType: 'text/html', body: pageFor(adapter) }));
    await page.goto(`${base}/try.html`);
    wrong.push(...(await tryPlayer(page, name, `${base}/media/film/hls/main.m3u8`)));
    wrong.push(...((await page.evaluate('window.wrong')) as string[]));
    const of =
      wrong.length === 0 ? `a flash in time, ${SEEKS} seeks, 2 qualities, 2 languages, 2 captions` : wrong.join('; ');
    judge(`errors of ${name} ${version} in Chromium`, String(wrong.length), '0', wrong.length === 0, of);
    await page.close();
  }
}
