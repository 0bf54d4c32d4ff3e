// The player: hls.js where the browser has Media Source Extensions, its own HLS where it has not, a plain file where the
// stream has no HLS. Everything can be done with the keyboard.
import { address, clock, parseThumbnails } from './text.js';

const at = (id) => document.getElementById(id);
const video = at('video');
const player = at('player');
const seek = at('seek');
const quality = at('quality');
const STEPS = 1000;

let hls = null;
let loading = 0;
let thumbnails = [];
/** Counts streams opened, so that an answer for one that was closed meanwhile is not used. */
let turn = 0;

function loadHls() {
  if (window.Hls) return Promise.resolve(window.Hls);
  const script = document.createElement('script');
  script.src = '/gallery/hls.min.js';
  return new Promise((resolve, reject) => {
    script.onload = () => resolve(window.Hls);
    script.onerror = () => reject(new Error('the player could not be loaded'));
    document.head.append(script);
  });
}

function fail(text) {
  const box = at('player-error');
  box.textContent = text;
  box.hidden = false;
}

function setQualities(options, chosen) {
  quality.replaceChildren(...options.map(({ value, text }) => new Option(text, value, false, value === chosen)));
  quality.disabled = options.length < 2;
}

async function playHls(url, mine) {
  const Hls = await loadHls();
  if (mine !== turn) return;
  if (!Hls.isSupported()) {
    if (!video.canPlayType('application/vnd.apple.mpegurl')) return fail('This browser cannot play HLS.');
    setQualities([{ value: 'auto', text: 'Auto' }], 'auto');
    video.src = url;
    return;
  }
  hls = new Hls({ capLevelToPlayerSize: true });
  hls.on(Hls.Events.MANIFEST_PARSED, (_event, { levels }) => {
    const rungs = levels.map((level, i) => ({ value: String(i), text: `${Math.min(level.width, level.height)}p` }));
    setQualities([{ value: 'auto', text: 'Auto' }, ...rungs.reverse()], 'auto');
  });
  hls.on(Hls.Events.LEVEL_SWITCHED, (_event, { level }) => {
    player.dataset.level = String(level);
  });
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

function playFile(files) {
  const best = files.at(-1);
  setQualities(files.map(({ label }) => ({ value: label, text: label })).reverse(), best.label);
  video.src = best.url;
}

/** At once, also what is loaded already: `nextLevel` leaves that as it is where little is left to play. */
function chooseLevel(value) {
  if (value === 'auto') hls.nextLevel = -1;
  else hls.currentLevel = Number(value);
}

function chooseFile(url) {
  const { currentTime, paused } = video;
  video.src = url;
  video.currentTime = currentTime;
  if (!paused) video.play().catch(() => {});
}

async function loadThumbnails(url, mine) {
  const text = await fetch(url).then((response) => (response.ok ? response.text() : ''));
  if (mine === turn) thumbnails = parseThumbnails(text, url);
}

/** Opens a stream at a time; nothing plays until the viewer starts it. */
export function openStream(stream, seconds) {
  closeStream();
  const mine = turn;
  const { origin } = window.location;
  const files = Object.entries(stream.progressive ?? {})
    .map(([label, path]) => ({ label, url: address(path, origin) }))
    .filter(({ url }) => url !== null);
  quality.onchange = () => {
    const file = files.find(({ label }) => label === quality.value);
    if (hls !== null) chooseLevel(quality.value);
    else if (file !== undefined) chooseFile(file.url);
  };
  video.poster = address(stream.poster, origin) ?? '';
  player.dataset.upright = 'false';
  const url = address(stream.hls, origin);
  if (url !== null) playHls(url, mine).catch((error) => fail(error.message));
  else if (files.length > 0) playFile(files);
  else fail('This stream has nothing to play.');
  const track = address(stream.thumbnails, origin);
  if (track !== null) loadThumbnails(track, mine).catch(() => {});
  if (seconds > 0) video.addEventListener('loadedmetadata', () => seekTo(seconds), { once: true });
  at('duration').textContent = clock(stream.duration_s);
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
  video.pause();
  video.removeAttribute('src');
  video.removeAttribute('poster');
  video.load();
  seek.value = '0';
  setQualities([], '');
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
  seek.setAttribute('aria-valuetext', `${clock(video.currentTime)} of ${clock(length)}`);
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
  at('preview-time').textContent = clock(seconds);
  const half = cue.width / 2 + 4;
  const width = seek.clientWidth;
  box.style.insetInlineStart = `${Math.min(Math.max(half, share * width), Math.max(half, width - half))}px`;
}

const keys = {
  ' ': toggle,
  k: toggle,
  ArrowLeft: () => seekTo(video.currentTime - 5),
  ArrowRight: () => seekTo(video.currentTime + 5),
  j: () => seekTo(video.currentTime - 10),
  l: () => seekTo(video.currentTime + 10),
  Home: () => seekTo(0),
  End: () => seekTo(lengthOf()),
  m: () => at('mute').click(),
  f: () => at('fullscreen').click(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
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

for (const name of ['play', 'pause', 'ended', 'emptied']) video.addEventListener(name, showState);
for (const name of ['timeupdate', 'seeking', 'progress', 'durationchange']) video.addEventListener(name, showPosition);
video.addEventListener('loadedmetadata', () => {
  player.dataset.upright = String(video.videoHeight > video.videoWidth);
});
video.addEventListener('error', () => {
  if (hls === null && video.hasAttribute('src')) fail('This file cannot be played right now.');
});
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
