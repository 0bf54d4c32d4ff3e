// What the gallery says and computes, without touching the page.

/** 3725 → 1:02:05 */
export function clock(seconds) {
  const whole = Number.isFinite(seconds) ? Math.max(0, Math.floor(seconds)) : 0;
  const part = (value) => String(value).padStart(2, '0');
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${part(minutes)}:${part(whole % 60)}` : `${minutes}:${part(whole % 60)}`;
}

/** A path of the document as an address of the origin the document came from; null for anything else. */
export function address(path, origin) {
  if (typeof path !== 'string' || !path.startsWith('/') || path.startsWith('//')) return null;
  const url = new URL(path, origin);
  return url.origin === origin ? url.href : null;
}

/** The links of a Link header that have a title and lead to a path of the same origin. */
export function linksOf(header) {
  const link = /<(\/(?!\/)[^>\\]*)>([^<]*)/g;
  return [...header.matchAll(link)].flatMap(([, path, parameters]) => {
    const title = /;\s*title="([^"]+)"/.exec(parameters)?.[1];
    return title === undefined ? [] : [{ path, title }];
  });
}

/** `#/id?t=12` → { id, seconds } */
export function parseRoute(hash) {
  const match = /^#\/([a-z0-9][a-z0-9_-]*)(?:\?t=(\d+(?:\.\d+)?))?$/.exec(hash);
  return match === null ? null : { id: match[1], seconds: Number(match[2] ?? 0) };
}

export const routeOf = (id, seconds = 0) => `#/${id}${seconds >= 1 ? `?t=${Math.floor(seconds)}` : ''}`;

const stampSeconds = (stamp) => stamp.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);

/** Cues of a thumbnail track: when, and which part of which picture. */
export function parseThumbnails(text, base) {
  const cue = /^([\d:.]+) --> ([\d:.]+)\s*\n(\S+)#xywh=(\d+),(\d+),(\d+),(\d+)/gm;
  return [...text.matchAll(cue)].map(([, from, to, file, x, y, width, height]) => ({
    from: stampSeconds(from),
    to: stampSeconds(to),
    picture: new URL(file, base).href,
    x: Number(x),
    y: Number(y),
    width: Number(width),
    height: Number(height),
  }));
}

/** Chapters of a WebVTT track: when they begin and end, and what they are called. */
export function parseChapters(text) {
  const letters = { '&amp;': '&', '&lt;': '<', '&gt;': '>' };
  const cue = /^([\d:.]+) --> ([\d:.]+)[^\n]*\n(.+)$/gm;
  return [...text.replaceAll('\r\n', '\n').matchAll(cue)].map(([, from, to, title]) => ({
    from: stampSeconds(from),
    to: stampSeconds(to),
    title: title.replaceAll(/<[^>]*>/g, '').replaceAll(/&(?:amp|lt|gt);/g, (each) => letters[each]),
  }));
}

/** The place in the list of the chapter at a moment; -1 before the first one. */
export const chapterAt = (chapters, seconds) => chapters.findLastIndex(({ from }) => seconds >= from - 0.01);

const escapeHtml = (text) =>
  text.replace(/[&<>"]/g, (letter) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[letter]);

/** 12345678 → 12.3 MB */
export function bytesText(bytes) {
  const units = ['kB', 'MB', 'GB', 'TB'];
  let [value, unit] = [bytes / 1000, 0];
  for (; value >= 999.5 && unit < units.length - 1; unit++) value /= 1000;
  return `${value < 99.95 ? Number(value.toFixed(1)) : Math.round(value)} ${units[unit]}`;
}

/** Rows of the panel below the player: a name and a text worth copying. */
export function snippetsFor(stream, origin) {
  const rows = [];
  const hls = address(stream.hls, origin);
  const files = Object.entries(stream.progressive ?? {}).flatMap(([label, path]) => {
    const url = address(path, origin);
    return url === null ? [] : [{ label, url }];
  });
  if (hls !== null) rows.push({ name: 'HLS', text: hls });
  for (const { label, url } of files) {
    const bytes = stream.bytes?.[label];
    rows.push({ name: `MP4 ${label}`, size: Number.isFinite(bytes) ? bytesText(bytes) : '', text: url });
  }
  const best = files.at(-1)?.url;
  const poster = address(stream.poster, origin);
  const title = escapeHtml(stream.title);
  if (best !== undefined) {
    const picture = poster === null ? '' : ` poster="${escapeHtml(poster)}"`;
    rows.push({ name: 'HTML', text: `<video controls src="${escapeHtml(best)}"${picture} title="${title}"></video>` });
  }
  if (hls !== null) {
    const lines = ["import Hls from 'hls.js';", 'const hls = new Hls();', `hls.loadSource('${hls}');`];
    rows.push({ name: 'hls.js', text: [...lines, "hls.attachMedia(document.querySelector('video'));"].join('\n') });
  }
  rows.push({ name: 'Terminal', text: `ffplay ${hls ?? best}` });
  return rows;
}

const listOf = (value) => (Array.isArray(value) ? value : []);

function languageName(tag) {
  try {
    return new Intl.DisplayNames([tag, 'en'], { type: 'language' }).of(tag) ?? tag;
  } catch {
    return tag;
  }
}

const capital = (text) => text.charAt(0).toLocaleUpperCase() + text.slice(1);
const namesOf = (tags) =>
  [...new Set(tags.filter((tag) => typeof tag === 'string' && tag !== 'und'))].map(languageName);

/** Languages that are spoken in a stream; of older streams only the field `language` may say so. */
export const spokenIn = (stream) => {
  const spoken = listOf(stream.audio).map(({ language }) => language);
  return namesOf(spoken.length > 0 ? spoken : [stream.language]).map(capital);
};

/** Languages of captions that are a choice; forced ones are part of the picture. */
export const captionsIn = (stream) =>
  namesOf(
    listOf(stream.captions)
      .filter(({ forced }) => !forced)
      .map(({ language }) => language),
  ).map(capital);

/** How fine the picture is at best, as people say it; null where the document does not tell. */
export function sharpness(stream, renditions = []) {
  const { width, height } = stream;
  if (Number.isFinite(width) && Number.isFinite(height)) return `${Math.min(width, height)}p`;
  const files = renditions.filter(({ label }) => Object.hasOwn(stream.progressive ?? {}, label));
  return files.length === 0 ? null : `${Math.max(...files.map((each) => Math.min(each.width, each.height)))}p`;
}

/** Width of a picture to its height; null where the document does not tell. */
export const shapeOf = ({ width, height }) => (width > 0 && height > 0 ? width / height : null);

const MOST_NAMED = 3;
const some = (names) =>
  names.length <= MOST_NAMED
    ? names.join(', ')
    : `${names.slice(0, MOST_NAMED - 1).join(', ')} and ${names.length - MOST_NAMED + 1} more`;

/** One line below the title of a card; the length is on its picture. */
export function cardFacts(stream, renditions) {
  const captions = captionsIn(stream);
  const parts = [sharpness(stream, renditions), some(spokenIn(stream)), captions.length > 0 ? 'CC' : ''];
  return parts.filter(Boolean).join(' · ');
}

/** One line below the title of the stream that is open. */
export function factsFor(stream, renditions) {
  const captions = captionsIn(stream);
  const largest = Math.max(...Object.values(stream.bytes ?? {}).filter(Number.isFinite));
  const parts = [clock(stream.duration_s), sharpness(stream, renditions), some(spokenIn(stream))];
  if (captions.length > 0) parts.push(`Captions: ${some(captions)}`);
  if (Number.isFinite(largest)) parts.push(`${bytesText(largest)} as a file`);
  return parts.filter(Boolean).join(' · ');
}

const plain = (text) => text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();

/** What a search looks through: title, id, languages, and texts that the manifest added. */
export function searchText(stream) {
  const added = Object.values(stream).flatMap((value) => (Array.isArray(value) ? value : [value]));
  const words = added.filter((value) => typeof value === 'string' && !value.startsWith('/'));
  return plain([...words, ...spokenIn(stream), ...captionsIn(stream)].join(' '));
}

/** Whether a prepared text has every word of a query. */
export function matcherOf(query) {
  const words = plain(query).split(/\s+/).filter(Boolean);
  return (prepared) => words.every((word) => prepared.includes(word));
}

/** What the keys do, as the page lists it; `player.js` acts on the same names. */
export const keyList = [
  ['k or space', 'Play or pause'],
  ['← →', 'Back or forward 5 seconds'],
  ['j l', 'Back or forward 10 seconds'],
  ['↑ ↓', 'Louder or quieter'],
  ['m', 'Mute'],
  ['c', 'Captions on or off'],
  ['< >', 'Slower or faster'],
  [', .', 'Back or forward one picture'],
  ['p n', 'Previous or next chapter'],
  ['0 … 9', 'To that tenth of the stream'],
  ['Home End', 'To the start or the end'],
  ['s', 'Captions, language, quality and speed'],
  ['i', 'Picture in picture'],
  ['f', 'Full screen'],
  ['/', 'Search'],
  ['Esc', 'Close'],
];
