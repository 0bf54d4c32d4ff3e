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

/** `#/id?t=12` → { id, seconds } */
export function parseRoute(hash) {
  const match = /^#\/([a-z0-9][a-z0-9_-]*)(?:\?t=(\d+(?:\.\d+)?))?$/.exec(hash);
  return match === null ? null : { id: match[1], seconds: Number(match[2] ?? 0) };
}

export const routeOf = (id, seconds = 0) => `#/${id}${seconds > 0 ? `?t=${Math.floor(seconds)}` : ''}`;

/** Cues of a thumbnail track: when, and which part of which picture. */
export function parseThumbnails(text, base) {
  const seconds = (stamp) => stamp.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
  const cue = /^([\d:.]+) --> ([\d:.]+)\s*\n(\S+)#xywh=(\d+),(\d+),(\d+),(\d+)/gm;
  return [...text.matchAll(cue)].map(([, from, to, file, x, y, width, height]) => ({
    from: seconds(from),
    to: seconds(to),
    picture: new URL(file, base).href,
    x: Number(x),
    y: Number(y),
    width: Number(width),
    height: Number(height),
  }));
}

const escapeHtml = (text) =>
  text.replace(/[&<>"]/g, (letter) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[letter]);

/** Rows of the panel below the player: a name and a text worth copying. */
export function snippetsFor(stream, origin) {
  const rows = [];
  const hls = address(stream.hls, origin);
  const files = Object.entries(stream.progressive ?? {}).flatMap(([label, path]) => {
    const url = address(path, origin);
    return url === null ? [] : [{ label, url }];
  });
  if (hls !== null) rows.push({ name: 'HLS', text: hls });
  for (const { label, url } of files) rows.push({ name: `MP4 ${label}`, text: url });
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

/** One line below the title. */
export function factsFor(stream) {
  const rungs = Object.keys(stream.progressive ?? {});
  const parts = [clock(stream.duration_s), `${stream.fps} frames a second`];
  if (stream.hls) parts.push('adaptive');
  if (rungs.length > 0) parts.push(`MP4 ${rungs.join(', ')}`);
  return parts.join(' · ');
}
