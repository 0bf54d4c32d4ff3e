// The player: hls.js where the browser has Media Source Extensions, its own HLS where it has not, a plain file where the
// stream has no HLS. Everything can be done with the keyboard.
import { chapterTitle, followChapters, neighbour, showChapters } from './chapters.js';
import { fillMenu, openSettings, remember, remembered, settingsAreOpen, showChosen, toggleSettings } from './menus.js';
import { again, patientPolicies, reloadsOf } from './network.js';
import { address, clock, parseThumbnails, shapeOf } from './text.js';

const at = (id) => document.getElementById(id);
const video = at('video');
const player = at('player');
const seek = at('seek');
const STEPS = 1000;
const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2];
const IDLE_MS = 3000;
const AUTO = 'auto';
const OFF = 'off';

let hls = null;
let loading = 0;
let thumbnails = [];
/** What `,` and `.` step by. */
let frameS = 0.04;
/** Tracks of captions: { text, language, forced, isDefault }, and how to show one, or none with -1. */
let captions = [];
let showCaptions = () => {};
/** Of the sound that plays; null where there is no choice. */
let spoken = null;
/** Without hls.js the video itself loads, and is told to do it again. */
const reloads = reloadsOf(() => hls === null && video.hasAttribute('src') && chooseFile(video.src));
/** Counts streams opened, so that an answer for one that was closed meanwhile is not used. */
let turn = 0;

function loadHls() {
  if (window.Hls) return window.Hls;
  const script = document.createElement('script');
  script.src = '/gallery/hls.min.js';
  return new Promise((resolve, reject) => {
    script.onload = () => resolve(window.Hls);
    script.onerror = () => reject(new TypeError('the player could not be loaded'));
    document.head.append(script);
  });
}

function fail(text) {
  const box = at('player-error');
  box.textContent = text;
  box.hidden = false;
}

/** Captions that are off still say what the sound leaves open: forced ones, in its language. */
const forcedOnes = () =>
  captions.findIndex(({ forced, language }) => forced && (spoken === null || language === spoken));

function chooseCaptions(value) {
  showCaptions(value === OFF ? forcedOnes() : Number(value));
  at('captions-on').setAttribute('aria-pressed', String(value !== OFF));
  showChosen('captions', value);
}

/** What a viewer chose before, or else the default of the stream. */
function firstCaptions() {
  const wanted = remembered('captions');
  const find = (fits) => captions.findIndex((track) => !track.forced && fits(track));
  const found = wanted === null ? find(({ isDefault }) => isDefault) : find(({ language }) => language === wanted);
  return found < 0 ? OFF : String(found);
}

function setCaptions(tracks, show) {
  captions = tracks;
  showCaptions = show;
  const choices = tracks.map(({ text }, i) => ({ value: String(i), text })).filter((_, i) => !tracks[i].forced);
  at('captions-on').hidden = choices.length === 0;
  const options = choices.length === 0 ? [] : [{ value: OFF, text: 'Off' }, ...choices];
  const first = firstCaptions();
  fillMenu('captions', options, first, (value) => {
    chooseCaptions(value);
    remember('captions', value === OFF ? OFF : captions[Number(value)].language);
  });
  if (tracks.length > 0) chooseCaptions(first);
}

function toggleCaptions() {
  if (at('captions-on').hidden) return;
  const isOn = at('captions-on').getAttribute('aria-pressed') === 'true';
  const again = firstCaptions();
  const any = String(captions.findIndex(({ forced }) => !forced));
  const value = isOn ? OFF : again === OFF ? any : again;
  chooseCaptions(value);
  remember('captions', isOn ? OFF : captions[Number(value)].language);
}

function setLanguages(tracks, chosen, choose) {
  const options = tracks.map(({ name, lang }, i) => ({ value: String(i), text: name || lang || `Track ${i + 1}` }));
  spoken = tracks[chosen]?.lang || null;
  fillMenu('language', options, String(chosen), (value) => {
    choose(Number(value));
    spoken = tracks[Number(value)].lang || null;
    remember('language', spoken ?? '');
    if (at('captions').value === OFF || captions.every(({ forced }) => forced)) showCaptions(forcedOnes());
  });
}

const lines = ({ width, height }) => `${Math.min(width, height)}p`;

/** Variants with 5.1 are for devices that have as many speakers; here they would show each quality twice. */
function keepStereo(audioTracks) {
  const many = audioTracks.filter(({ channels }) => Number.parseInt(channels, 10) > 2).map(({ groupId }) => groupId);
  const doubled = hls.levels.filter(({ audioGroups }) => audioGroups?.some((group) => many.includes(group)));
  for (const level of doubled) hls.removeLevel(hls.levels.indexOf(level));
}

function followHls(Hls) {
  hls.on(Hls.Events.MANIFEST_PARSED, (_event, { audioTracks }) => {
    keepStereo(audioTracks);
    const rungs = hls.levels.map((level, i) => ({ value: String(i), text: lines(level) }));
    fillMenu('quality', [{ value: AUTO, text: 'Auto' }, ...rungs.reverse()], AUTO, chooseLevel);
  });
  hls.on(Hls.Events.LEVEL_SWITCHED, (_event, { level }) => {
    player.dataset.level = String(level);
    const auto = at('quality').options[0];
    if (auto?.value === AUTO) auto.text = hls.autoLevelEnabled ? `Auto (${lines(hls.levels[level])})` : 'Auto';
  });
  hls.on(Hls.Events.AUDIO_TRACKS_UPDATED, (_event, { audioTracks }) => {
    const choose = (track) => {
      hls.audioTrack = track;
    };
    setLanguages(audioTracks, Math.max(0, hls.audioTrack), choose);
  });
  hls.on(Hls.Events.AUDIO_TRACK_SWITCHED, () => {
    spoken = hls.audioTracks[hls.audioTrack]?.lang || null;
    showChosen('language', String(hls.audioTrack));
  });
  hls.on(Hls.Events.SUBTITLE_TRACKS_UPDATED, (_event, { subtitleTracks }) => {
    const mine = hls;
    const tracks = subtitleTracks.map((track) => ({
      text: track.name,
      language: track.lang ?? '',
      forced: track.forced,
      isDefault: track.default,
    }));
    const show = (track) => {
      mine.subtitleTrack = track;
    };
    // hls.js turns the default on right after this; what the viewer chose before goes over that.
    queueMicrotask(() => mine === hls && setCaptions(tracks, show));
  });
}

async function playHls(url, mine) {
  const Hls = await again(loadHls);
  if (mine !== turn) return;
  if (!Hls.isSupported()) {
    if (!video.canPlayType('application/vnd.apple.mpegurl')) return fail('This browser cannot play HLS.');
    video.src = url;
    video.addEventListener('loadedmetadata', () => mine === turn && followBrowser(), { once: true });
    return;
  }
  const lang = remembered('language');
  const preference = lang ? { audioPreference: { lang } } : {};
  hls = new Hls({ capLevelToPlayerSize: true, ...patientPolicies(Hls), ...preference });
  followHls(Hls);
  hls.on(Hls.Events.ERROR, (_event, data) => {
    // In a stream of one segment hls.js forgets the end when a change of quality loads the sound anew.
    if (data.details === Hls.ErrorDetails.BUFFER_STALLED_ERROR && video.duration - video.currentTime < 0.5)
      hls.trigger(Hls.Events.BUFFER_EOS, {});
    if (!data.fatal) return;
    if (data.type === Hls.ErrorTypes.MEDIA_ERROR && loading++ === 0) hls.recoverMediaError();
    else fail('This stream cannot be played right now.');
  });
  hls.loadSource(url);
  hls.attachMedia(video);
}

/** Of a browser that plays HLS by itself: the tracks are those that it has found. */
function followBrowser() {
  const texts = [...video.textTracks].filter(({ kind }) => kind === 'subtitles' || kind === 'captions');
  if (texts.length > 0)
    setCaptions(
      texts.map(({ label, language }) => ({ text: label || language, language, forced: false, isDefault: false })),
      (shown) => showTexts(texts, shown),
    );
  const sounds = [...(video.audioTracks ?? [])];
  const named = sounds.map(({ label, language }) => ({ name: label, lang: language }));
  const choose = (chosen) => {
    for (const [i, track] of sounds.entries()) track.enabled = i === chosen;
  };
  setLanguages(
    named,
    Math.max(
      0,
      sounds.findIndex(({ enabled }) => enabled),
    ),
    choose,
  );
}

function showTexts(tracks, shown) {
  for (const [i, track] of tracks.entries()) track.mode = i === shown ? 'showing' : 'disabled';
}

/** Files have no captions of their own: those of the document go beside them. */
function addCaptions(stream, origin) {
  const listed = (Array.isArray(stream.captions) ? stream.captions : []).flatMap((caption) => {
    const src = address(caption.path, origin);
    return src === null ? [] : [{ ...caption, src }];
  });
  const elements = listed.map(({ src, language, name }) => {
    const track = Object.assign(document.createElement('track'), { kind: 'subtitles', srclang: language, label: name });
    track.src = src;
    return track;
  });
  video.append(...elements);
  setCaptions(
    listed.map(({ name, language, forced, default: isDefault }) => ({ text: name, language, forced, isDefault })),
    (shown) =>
      showTexts(
        elements.map(({ track }) => track),
        shown,
      ),
  );
}

function playFile(files) {
  const best = files.at(-1);
  const options = files.map(({ label }) => ({ value: label, text: label })).reverse();
  fillMenu('quality', options, best.label, (label) => chooseFile(files.find((file) => file.label === label).url));
  video.src = best.url;
}

/** At once, also what is loaded already: `nextLevel` leaves that as it is where little is left to play. */
function chooseLevel(value) {
  if (value === AUTO) hls.nextLevel = -1;
  else hls.currentLevel = Number(value);
}

function chooseFile(url) {
  const { currentTime, paused } = video;
  video.src = url;
  video.currentTime = currentTime;
  if (!paused) video.play().catch(() => {});
}

function chooseSpeed(value) {
  const speed = SPEEDS.includes(Number(value)) ? Number(value) : 1;
  // The default is what a video has after another quality was loaded.
  video.defaultPlaybackRate = speed;
  video.playbackRate = speed;
  showChosen('speed', String(speed));
  remember('speed', String(speed));
}

function changeSpeed(step) {
  const nearest = SPEEDS.findIndex((speed) => speed >= video.playbackRate - 0.01);
  chooseSpeed(SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, nearest + step))]);
}

const readText = (url) => again(() => fetch(url).then((response) => (response.ok ? response.text() : '')));

async function loadThumbnails(url, mine) {
  const text = await readText(url);
  if (mine === turn) thumbnails = parseThumbnails(text, url);
}

async function loadChapters(url, lengthS, mine) {
  const text = await readText(url);
  if (mine !== turn) return;
  showChapters(text, lengthS, (seconds) => {
    seekTo(seconds);
    video.play().catch(() => {});
  });
  followChapters(video.currentTime);
}

/** The player takes the shape of the picture, upright or wide. */
function setShape(shape) {
  player.style.setProperty('--shape', String(Math.min(2.4, Math.max(0.5, shape ?? 16 / 9))));
}

/** Opens a stream at a time; nothing plays until the viewer starts it. */
export function openStream(stream, seconds) {
  closeStream();
  const mine = turn;
  const { origin } = window.location;
  const files = Object.entries(stream.progressive ?? {})
    .map(([label, path]) => ({ label, url: address(path, origin) }))
    .filter(({ url }) => url !== null);
  video.poster = address(stream.poster, origin) ?? '';
  frameS = 1 / (stream.fps > 0 ? stream.fps : 25);
  setShape(shapeOf(stream));
  const url = address(stream.hls, origin);
  if (url !== null) playHls(url, mine).catch((error) => fail(error.message));
  else if (files.length > 0) {
    playFile(files);
    addCaptions(stream, origin);
  } else fail('This stream has nothing to play.');
  const track = address(stream.thumbnails, origin);
  if (track !== null) loadThumbnails(track, mine).catch(() => {});
  const chapters = address(stream.chapters, origin);
  if (chapters !== null) loadChapters(chapters, stream.duration_s, mine).catch(() => {});
  if (seconds > 0) video.addEventListener('loadedmetadata', () => mine === turn && seekTo(seconds), { once: true });
  at('duration').textContent = clock(stream.duration_s);
  const speeds = SPEEDS.map((speed) => ({ value: String(speed), text: speed === 1 ? 'Normal' : `${speed} ×` }));
  fillMenu('speed', speeds, '1', chooseSpeed);
  chooseSpeed(remembered('speed') ?? 1);
}

export function closeStream() {
  turn++;
  loading = 0;
  hls?.destroy();
  hls = null;
  thumbnails = [];
  delete player.dataset.level;
  at('player-error').hidden = true;
  at('preview').hidden = true;
  if (document.pictureInPictureElement === video) document.exitPictureInPicture().catch(() => {});
  video.removeAttribute('src');
  video.replaceChildren();
  video.load();
  seek.value = '0';
  openSettings(false);
  setCaptions([], () => {});
  for (const menu of ['language', 'quality']) fillMenu(menu, [], '', () => {});
  spoken = null;
  showChapters('', 0, () => {});
  showPosition();
}

export const position = () => video.currentTime;
const lengthOf = () => (Number.isFinite(video.duration) ? video.duration : 0);

function seekTo(seconds) {
  video.currentTime = Math.min(Math.max(0, seconds), lengthOf());
}

function toggle() {
  if (video.paused || video.ended) video.play().catch(() => {});
  else video.pause();
}

function showPosition() {
  const length = lengthOf();
  const share = length > 0 ? video.currentTime / length : 0;
  at('time').textContent = clock(video.currentTime);
  if (length > 0) at('duration').textContent = clock(length);
  seek.value = String(Math.round(share * STEPS));
  const title = chapterTitle(video.currentTime);
  const spokenPosition = `${clock(video.currentTime)} of ${clock(length)}`;
  seek.setAttribute('aria-valuetext', title === '' ? spokenPosition : `${spokenPosition}, ${title}`);
  followChapters(video.currentTime);
  at('played').style.inlineSize = `${share * 100}%`;
  const { buffered } = video;
  const end = buffered.length > 0 && length > 0 ? buffered.end(buffered.length - 1) / length : 0;
  at('buffered').style.inlineSize = `${end * 100}%`;
}

function showState() {
  const playing = !video.paused && !video.ended;
  player.dataset.playing = String(playing);
  at('play').setAttribute('aria-label', playing ? 'Pause' : 'Play');
  at('big-play').hidden = playing;
}

/** The picture of a moment, above the place of the bar that means it. */
function showPreview(share) {
  const seconds = share * lengthOf();
  const cue = thumbnails.find(({ from, to }) => seconds >= from && seconds < to) ?? thumbnails.at(-1);
  const box = at('preview');
  box.hidden = cue === undefined || lengthOf() === 0;
  if (box.hidden) return;
  const image = at('preview-image').style;
  image.backgroundImage = `url("${cue.picture}")`;
  image.backgroundPosition = `-${cue.x}px -${cue.y}px`;
  image.inlineSize = `${cue.width}px`;
  image.blockSize = `${cue.height}px`;
  const title = chapterTitle(seconds);
  at('preview-time').textContent = title === '' ? clock(seconds) : `${clock(seconds)} · ${title}`;
  const half = cue.width / 2 + 4;
  const width = seek.clientWidth;
  box.style.insetInlineStart = `${Math.min(Math.max(half, share * width), Math.max(half, width - half))}px`;
}

function toChapter(step) {
  const start = neighbour(video.currentTime, step);
  if (start !== null) seekTo(start);
}

function changeVolume(step) {
  video.volume = Math.min(1, Math.max(0, video.volume + step));
  video.muted = video.volume === 0;
}

/** By one picture, to find the one a viewer wants to look at. */
function stepFrame(step) {
  video.pause();
  seekTo(video.currentTime + step * frameS);
}

function toggleApart() {
  if (document.pictureInPictureElement === video) document.exitPictureInPicture().catch(() => {});
  else video.requestPictureInPicture?.().catch(() => {});
}

const keys = {
  ' ': toggle,
  k: toggle,
  ArrowLeft: () => seekTo(video.currentTime - 5),
  ArrowRight: () => seekTo(video.currentTime + 5),
  ArrowUp: () => changeVolume(0.05),
  ArrowDown: () => changeVolume(-0.05),
  j: () => seekTo(video.currentTime - 10),
  l: () => seekTo(video.currentTime + 10),
  Home: () => seekTo(0),
  End: () => seekTo(lengthOf()),
  m: () => at('mute').click(),
  f: () => at('fullscreen').click(),
  c: toggleCaptions,
  s: toggleSettings,
  i: toggleApart,
  '<': () => changeSpeed(-1),
  '>': () => changeSpeed(1),
  ',': () => stepFrame(-1),
  '.': () => stepFrame(1),
  p: () => toChapter(-1),
  n: () => toChapter(1),
};
for (let tenth = 0; tenth <= 9; tenth++) keys[tenth] = () => seekTo((lengthOf() * tenth) / 10);

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  wake();
  // Buttons, sliders and lists keep the keys they know themselves.
  const { target } = event;
  if (target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && event.key.startsWith('Arrow')))
    return;
  if (target instanceof HTMLButtonElement && event.key === ' ') return;
  const action = keys[event.key];
  if (action === undefined) return;
  event.preventDefault();
  action();
}

let idle;

/** The controls go away while a stream plays and nobody moves anything. */
function wake() {
  player.dataset.idle = 'false';
  clearTimeout(idle);
  idle = setTimeout(() => {
    player.dataset.idle = String(!settingsAreOpen());
  }, IDLE_MS);
}

for (const name of ['pointermove', 'pointerdown', 'focusin']) player.addEventListener(name, wake);
player.addEventListener('pointerleave', () => {
  player.dataset.idle = String(!settingsAreOpen());
});
at('apart').hidden = !document.pictureInPictureEnabled;
at('apart').addEventListener('click', toggleApart);
at('captions-on').addEventListener('click', toggleCaptions);
for (const name of ['play', 'pause', 'ended', 'emptied']) video.addEventListener(name, showState);
for (const name of ['timeupdate', 'seeking', 'progress', 'durationchange']) video.addEventListener(name, showPosition);
video.addEventListener('loadedmetadata', () => {
  setShape(shapeOf({ width: video.videoWidth, height: video.videoHeight }));
  // Browsers turn on what they think fits each time they load a file.
  if (captions.length > 0) chooseCaptions(at('captions').value || OFF);
});
video.addEventListener('error', () => {
  if (hls !== null || !video.hasAttribute('src')) return;
  if (!reloads.failed(video.error)) fail('This file cannot be played right now.');
});
video.addEventListener('canplay', reloads.succeeded);
video.addEventListener('click', toggle);
at('play').addEventListener('click', toggle);
at('big-play').addEventListener('click', toggle);
at('mute').addEventListener('click', () => {
  video.muted = !video.muted;
});
video.addEventListener('volumechange', () => {
  at('mute').setAttribute('aria-pressed', String(video.muted));
  at('volume').value = String(video.muted ? 0 : Math.round(video.volume * 100));
});
at('volume').addEventListener('input', (event) => {
  video.volume = Number(event.target.value) / 100;
  video.muted = video.volume === 0;
});
video.volume = Math.min(1, Math.max(0, Number(remembered('volume') ?? 1))) || 1;
at('volume').addEventListener('change', () => remember('volume', String(video.volume)));
at('fullscreen').addEventListener('click', () => {
  if (document.fullscreenElement) document.exitFullscreen();
  else player.requestFullscreen?.().catch(() => {});
});
seek.addEventListener('input', () => {
  const share = Number(seek.value) / STEPS;
  seekTo(share * lengthOf());
  showPreview(share);
});
seek.addEventListener('keydown', (event) => {
  // The slider's own step is a thousandth; five seconds is what one expects.
  const step = { ArrowLeft: -5, ArrowRight: 5, ArrowDown: -5, ArrowUp: 5 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  seekTo(video.currentTime + step);
});
seek.addEventListener('pointermove', (event) => {
  const { left, width } = seek.getBoundingClientRect();
  showPreview(Math.min(1, Math.max(0, (event.clientX - left) / width)));
});
for (const name of ['pointerleave', 'blur', 'change'])
  seek.addEventListener(name, () => {
    at('preview').hidden = true;
  });
player.addEventListener('keydown', onKey);
showState();
