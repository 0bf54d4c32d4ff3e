// Reading playlists back, for verify: a small strict parser that keeps what verify checks and refuses unknown tags.
interface PlaylistSegment {
  seconds: number;
  uri: string;
  range: { offset: number; size: number } | null;
}

export interface MediaPlaylist {
  version: number;
  targetSeconds: number;
  vod: boolean;
  ended: boolean;
  iframesOnly: boolean;
  map: { uri: string; range: { offset: number; size: number } | null } | null;
  segments: PlaylistSegment[];
}

export type Attributes = Map<string, string>;

export interface MultivariantPlaylist {
  independent: boolean;
  variants: { attributes: Attributes; uri: string }[];
  media: Attributes[];
  iframes: Attributes[];
}

export class PlaylistError extends Error {}

function linesOf(text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/\r$/, ''));
  if (lines[0] !== '#EXTM3U') throw new PlaylistError('does not start with #EXTM3U');
  return lines.slice(1).filter((line) => line !== '' && (!line.startsWith('#') || line.startsWith('#EXT')));
}

function parseAttributes(text: string): Attributes {
  const attributes: Attributes = new Map();
  let rest = text;
  while (rest !== '') {
    const match = /^([A-Z0-9-]+)=("[^"\r\n]*"|[^",\s]+)(?:,|$)/.exec(rest);
    if (match === null) throw new PlaylistError(`has an attribute list that cannot be read: ${rest.slice(0, 60)}`);
    attributes.set(match[1]!, match[2]!.replace(/^"|"$/g, ''));
    rest = rest.slice(match[0].length);
  }
  return attributes;
}

function parseRange(text: string, previousEnd: number | null): { offset: number; size: number } {
  const match = /^(\d+)(?:@(\d+))?$/.exec(text);
  if (match === null) throw new PlaylistError(`has a byte range that cannot be read: ${text}`);
  if (match[2] === undefined && previousEnd === null) throw new PlaylistError('has a byte range without an offset');
  return { size: Number(match[1]), offset: match[2] === undefined ? previousEnd! : Number(match[2]) };
}

const tagValue = (line: string) => line.slice(line.indexOf(':') + 1);
const tagName = (line: string) => (line.includes(':') ? line.slice(0, line.indexOf(':')) : line);

export function parseMediaPlaylist(text: string): MediaPlaylist {
  const playlist: MediaPlaylist = {
    version: 1,
    targetSeconds: 0,
    vod: false,
    ended: false,
    iframesOnly: false,
    map: null,
    segments: [],
  };
  let seconds: number | null = null;
  let range: PlaylistSegment['range'] = null;
  const take: Record<string, (value: string) => void> = {
    '#EXT-X-VERSION': (value) => Object.assign(playlist, { version: Number(value) }),
    '#EXT-X-TARGETDURATION': (value) => Object.assign(playlist, { targetSeconds: Number(value) }),
    '#EXT-X-PLAYLIST-TYPE': (value) => Object.assign(playlist, { vod: value === 'VOD' }),
    '#EXT-X-ENDLIST': () => Object.assign(playlist, { ended: true }),
    '#EXT-X-I-FRAMES-ONLY': () => Object.assign(playlist, { iframesOnly: true }),
    '#EXT-X-INDEPENDENT-SEGMENTS': () => {},
    '#EXT-X-MEDIA-SEQUENCE': () => {},
    '#EXT-X-MAP': (value) => {
      const attributes = parseAttributes(value);
      const bytes = attributes.get('BYTERANGE');
      playlist.map = { uri: attributes.get('URI') ?? '', range: bytes === undefined ? null : parseRange(bytes, 0) };
    },
    '#EXTINF': (value) => {
      seconds = Number(value.split(',')[0]);
    },
    '#EXT-X-BYTERANGE': (value) => {
      const last = playlist.segments.at(-1)?.range;
      range = parseRange(value, last ? last.offset + last.size : null);
    },
  };
  for (const line of linesOf(text)) {
    if (line.startsWith('#')) {
      const handle = take[tagName(line)];
      if (handle === undefined) throw new PlaylistError(`has the unknown tag ${tagName(line)}`);
      handle(tagValue(line));
      continue;
    }
    if (seconds === null || Number.isNaN(seconds)) throw new PlaylistError(`has no EXTINF before ${line}`);
    playlist.segments.push({ seconds, uri: line, range });
    seconds = null;
    range = null;
  }
  return playlist;
}

export function parseMultivariantPlaylist(text: string): MultivariantPlaylist {
  const playlist: MultivariantPlaylist = { independent: false, variants: [], media: [], iframes: [] };
  let attributes: Attributes | null = null;
  for (const line of linesOf(text)) {
    const name = tagName(line);
    if (!line.startsWith('#')) {
      if (attributes === null) throw new PlaylistError(`has no EXT-X-STREAM-INF before ${line}`);
      playlist.variants.push({ attributes, uri: line });
      attributes = null;
    } else if (attributes !== null) throw new PlaylistError('has an EXT-X-STREAM-INF without an address');
    else if (name === '#EXT-X-INDEPENDENT-SEGMENTS') playlist.independent = true;
    else if (name === '#EXT-X-STREAM-INF') attributes = parseAttributes(tagValue(line));
    else if (name === '#EXT-X-MEDIA') playlist.media.push(parseAttributes(tagValue(line)));
    else if (name === '#EXT-X-I-FRAME-STREAM-INF') playlist.iframes.push(parseAttributes(tagValue(line)));
    else if (name !== '#EXT-X-VERSION') throw new PlaylistError(`has the unknown tag ${name}`);
  }
  return playlist;
}
