// Everything that verify has to find, each by its name: how it is done to a good site, and what must be told. The site has
// a stream `a` (two rungs, addressed by ranges) and a stream `b` (one file for each segment).
import { symlink, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { Damage } from './damage.ts';
import { execute } from './fixture.ts';

type Row = [what: string, damage: (on: Damage) => Promise<unknown>, told: RegExp];

const document = 'api/streams.json';
const sums = 'media/SHA256SUMS';
const main = 'media/a/hls/main.m3u8';
const video = 'media/a/hls/v-36p.m3u8';
const sound = 'media/a/hls/a-32.m3u8';
const iframes = 'media/a/hls/iframes.m3u8';

const inDocument = (from: string | RegExp, to: string) => (on: Damage) => on.edit(document, (t) => t.replace(from, to));
const inMain = (from: string | RegExp, to: string | ((part: string, ...rest: string[]) => string)) => (on: Damage) =>
  on.edit(main, (text) => text.replace(from, to as string));
const inVideo = (from: string | RegExp, to: string) => (on: Damage) => on.edit(video, (t) => t.replace(from, to));

/** Damage that digests, the document's shape, forms, checksums or the ledger show. */
export const outside: Row[] = [
  ['a flipped bit', ({ edit }) => edit('media/a/36p.mp4', flipLast), /36p\.mp4: its digest/],
  ['a missing poster', ({ remove }) => remove('media/a/poster.jpg'), /poster\.jpg: does not exist/],
  ['a cut-off file', ({ site }) => truncate(join(site, 'media/a/36p.mp4'), 500), /36p\.mp4: its digest/],
  [
    'a cut-off segment',
    ({ site }) => truncate(join(site, 'media/b/hls/v-36p/00002.m4s'), 90),
    /00002\.m4s: its digest/,
  ],
  ['a lost segment', ({ remove }) => remove('media/b/hls/v-36p/00002.m4s'), /00002\.m4s: does not exist/],
  ['a fourth byte of health', ({ write }) => write('health.txt', 'okay'), /health\.txt: is not the three/],
  ['a document that is not JSON', ({ write }) => write(document, '{'), /streams\.json: is not JSON/],
  ['no document', ({ remove }) => remove(document), /streams\.json: does not exist/],
  ['a field of another type', inDocument(/"fps": [\d.]+/, '"fps": "25"'), /fps is not a number/],
  ['a field that is missing', inDocument(/"title": "a",/, ''), /title is not a string/],
  ['a day that does not exist', inDocument(/"updated": "[\d-]+"/, '"updated": "2026-13-45"'), /updated is not a date/],
  ['an id that is there twice', inDocument('"id": "b"', '"id": "a"'), /an id twice/],
  ['a label that no rendition has', inDocument('"36p": "/media', '"37p": "/media'), /the label 37p/],
  ['a path outside media', inDocument('/media/a/hls', '/other'), /\/other\/main\.m3u8 is not under \/media\//],
  ['a path without a file', inDocument('a/hls/main', 'a/hls/none'), /none\.m3u8: is not in SHA256SUMS/],
  ['a path of another stream', inDocument('/media/a/36p', '/media/b/36p'), /belongs to another stream/],
  ['a length that nothing has', inDocument(/"duration_s": /, '"duration_s": 9'), /duration_s is 9\S*, measured/],
  ['a frame rate that nothing has', inDocument(/"fps": 1/, '"fps": 3'), /fps is 3\S*, measured/],
  [
    'a file that became a link',
    async ({ remove, site }) => {
      await remove('media/a/36p.mp4');
      await symlink('/etc/hostname', join(site, 'media/a/36p.mp4'));
    },
    /36p\.mp4: is not a plain file/,
  ],
  ['a stale .gz', ({ write }) => write(`${document}.gz`, gzipSync('{}')), /json\.gz: is not the compressed form/],
  ['a stale .br', ({ write }) => write('gallery/gallery.js.br', brotliCompressSync('x')), /js\.br: is not the compr/],
  ['a .gz that is none', ({ write }) => write(`${sums}.gz`, 'x'), /SHA256SUMS\.gz: cannot be unpacked/],
  ['a missing .br', ({ remove }) => remove(`${sums}.br`), /SHA256SUMS\.br: does not exist/],
  ['a form without its text', ({ remove }) => remove('gallery/text.js'), /text\.js\.br: what it was made of/],
  ['no checksums', ({ remove }) => remove(sums), /SHA256SUMS: does not exist/],
  ['checksums out of order', ({ edit }) => edit(sums, swapLines), /SHA256SUMS: line 2 is out of order/],
  ['checksums that stop in a line', ({ edit }) => edit(sums, (t) => t.slice(0, -1)), /the last line does not end/],
  ['checksums of files elsewhere', ({ edit }) => edit(sums, (t) => t.replace('  a/', '  ../')), /leads outside media/],
  [
    'a file that lost its checksum',
    ({ edit }) => edit(sums, dropLine(/poster/)),
    /a\/poster\.jpg: is not in SHA256SUMS/,
  ],
  ['an unlisted media file', ({ write }) => write('media/a/extra.mp4', 'x'), /extra\.mp4: is not in SHA256SUMS/],
  [
    'a listed file that was never published',
    async ({ write, edit }) => {
      await write('media/b/zzz.mp4', '');
      await edit(sums, (text) => `${text}${emptyDigest}  b/zzz.mp4\n`);
    },
    /b\/zzz\.mp4: is in SHA256SUMS and was never published/,
  ],
  [
    'a file exchanged together with its checksum',
    ({ edit }) => edit('ledger', (text) => text.replace(/("media\/a\/36p\.mp4":\{"sha256":")\w{8}/, '$1deadbeef')),
    /a\/36p\.mp4: its digest in SHA256SUMS is not the one it was published with/,
  ],
  [
    'a stream that the ledger lacks',
    ({ edit }) => edit('ledger', (t) => `${t.split('\n')[1]}\n`),
    /stream a: is not in the l/,
  ],
  [
    'a withdrawn stream in the document',
    ({ edit }) => edit('ledger', (text) => `${text}{"type":"withdraw","at":"2026-01-01T00:00:00Z","id":"a"}\n`),
    /stream a: was withdrawn/,
  ],
  [
    'a poster that is not the one in the ledger',
    inDocument('/media/a/poster.jpg', '/media/a/thumbs-001.jpg'),
    /stream a: its poster in the document is not what the ledger says/,
  ],
];

/** Damage inside the files of a stream, with digests, forms and ledger in agreement with it. */
export const inside: Row[] = [
  ['a range that is not a fragment', inVideo(/BYTERANGE:(\d+)\d@/, 'BYTERANGE:$1@'), /v-36p\.m3u8: has segment 0 at a/],
  ['a segment of another length', inVideo(/EXTINF:\d/, 'EXTINF:4'), /v-36p\.m3u8: segment 0 lasts .* declared with 4/],
  ['a target that is too short', inVideo('DURATION:6', 'DURATION:0'), /longer than its target/],
  ['a target that is too long', inVideo('DURATION:6', 'DURATION:60'), /target duration of 60 s/],
  ['a playlist that does not end', inVideo('#EXT-X-ENDLIST\n', ''), /v-36p\.m3u8: is not a finished VOD/],
  ['a playlist without its header', inVideo(/#EXT-X-MAP.*\n/, ''), /v-36p\.m3u8: has no EXT-X-MAP/],
  [
    'a playlist without a segment',
    ({ edit }) => edit(sound, (t) => t.replace(segments, '')),
    /a-32\.m3u8: names no seg/,
  ],
  [
    'a bandwidth a fifth too high',
    inMain(/:BANDWIDTH=(\d+)/, times(1.2)),
    /variant .*: BANDWIDTH is \d+, measured \d+/,
  ],
  ['an average a fifth too low', inMain(/AVERAGE-BANDWIDTH=(\d+)/, times(0.8)), /AVERAGE-BANDWIDTH is \d+, measured/],
  ['codecs that are not in the file', inMain(/avc1\.64\w+/, 'avc1.4d401e'), /CODECS is not avc1\.64/],
  ['another resolution', inMain('RESOLUTION=64x36,F', 'RESOLUTION=64x38,F'), /RESOLUTION is not 64x36/],
  ['another frame rate', inMain('FRAME-RATE=10.000', 'FRAME-RATE=12.000'), /FRAME-RATE is not 10\.000/],
  ['more channels than there are', inMain('CHANNELS="2"', 'CHANNELS="6"'), /sound a-\d+\.m3u8: CHANNELS is not 2/],
  ['an unknown group of sound', inMain('AUDIO="audio-32"', 'AUDIO="audio-9"'), /unknown audio group audio-9/],
  ['a variant without sound', inMain('AUDIO="audio-32",', ''), /has no sound, and others have/],
  ['segments that may depend on others', inMain('#EXT-X-INDEPENDENT-SEGMENTS\n', ''), /lacks EXT-X-INDEPENDENT/],
  ['a playlist that leads out of the stream', inMain('\nv-36p', '\n../../b/x'), /x\.m3u8, which is outside the stream/],
  ['no I-frame playlist', inMain(/#EXT-X-I-FRAME.*\n/, ''), /names no I-frame playlist/],
  [
    'I-frames with another codec',
    inMain(/(I-FRAME.*CODECS=")avc1\.\w+/, '$1avc1.4d401e'),
    /I-frames: CODECS is not avc1/,
  ],
  [
    'I-frames that do not say so',
    ({ edit }) => edit(iframes, (t) => t.replace(/#.*FRAMES-ONLY\n/, '')),
    /I-FRAMES-ONLY/,
  ],
  ['two I-frames exchanged', ({ edit }) => edit(iframes, swapRanges), /iframes\.m3u8: has segment 0 at a range/],
  [
    'I-frames that stop early',
    ({ edit }) => edit(iframes, (t) => t.replace(lastSegment, '')),
    /leaves out 1 fragments/,
  ],
  ['a file without moov', ({ edit }) => edit('media/a/36p.mp4', (t) => t.replace('moov', 'free')), /moov is missing/],
  [
    'an HLS header without moov',
    ({ edit }) => edit(init, (t) => t.replace('moov', 'free')),
    /v-36p\.m3u8: moov is mis/,
  ],
  [
    'moov after the data',
    async ({ site }) => {
      const from = join(site, 'media/a/36p.mp4');
      const args = ['-v', 'error', '-i', from, '-c', 'copy', '-f', 'mp4', `${from}.new`];
      await execute('ffmpeg', args);
      await execute('mv', [`${from}.new`, from]);
    },
    /36p\.mp4: is not made for progressive play/,
  ],
  [
    'a file with less data than it describes',
    ({ edit }) => edit('media/a/36p.mp4', shortenData),
    /describes \d+ bytes/,
  ],
  ['a fragment with other data', ({ edit }) => edit('media/b/hls/v-36p/00001.m4s', shortenData), /other data than its/],
  ['two segments exchanged', exchangeSegments, /b\/hls\/v-36p\.m3u8: segment 0 starts at another time/],
  ['a rendition’s file under another label', exchangeLabels, /36p\.mp4: is 160x90, larger than 36p/],
  ['sound that stops before the picture', dropLastSound, /sound a-32\.m3u8: lasts .* s, the picture/],
  [
    'a poster that is cut off',
    ({ site }) => truncate(join(site, 'media/a/poster.jpg'), 300),
    /poster\.jpg: is not a whole/,
  ],
  [
    'a thumbnail outside its sheet',
    ({ edit }) => edit(cues, (t) => t.replace('xywh=0,0', 'xywh=4000,0')),
    /outside its/,
  ],
  ['a gap between thumbnails', ({ edit }) => edit(cues, (t) => t.replace('00:00:00.000', '00:00:00.500')), /has a gap/],
  ['thumbnails that stop early', ({ edit }) => edit(cues, (t) => t.replace(/\n\n[^\n]+\n[^\n]+\n*$/, '\n')), /ends at/],
];

const emptyDigest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const init = 'media/b/hls/v-36p/init.mp4';
const cues = 'media/a/thumbs.vtt';
const segments = /#EXTINF[\s\S]*(?=#EXT-X-ENDLIST)/;
const lastSegment = /#EXTINF[^#]*#EXT-X-BYTERANGE[^#]*(?=#EXT-X-ENDLIST)/;

function flipLast(text: string): string {
  return text.slice(0, -1) + String.fromCharCode(text.charCodeAt(text.length - 1) ^ 1);
}

function swapLines(text: string): string {
  const [first, second, ...rest] = text.split('\n');
  return [second, first, ...rest].join('\n');
}

function dropLine(which: RegExp): (text: string) => string {
  return (text) => {
    const lines = text.split('\n');
    return lines.filter((_, i) => i !== lines.findIndex((line) => which.test(line))).join('\n');
  };
}

function times(factor: number): (part: string, bits: string) => string {
  return (part, bits) => part.replace(bits, String(Math.round(Number(bits) * factor)));
}

function swapRanges(text: string): string {
  const [first, second] = text.match(/#EXT-X-BYTERANGE:.*/g)!;
  return text.replace(first!, 'HERE').replace(second!, first!).replace('HERE', second!);
}

/** The last bytes of the data are gone, and the size of the box says so. */
function shortenData(text: string): string {
  const at = text.lastIndexOf('mdat') - 4;
  const bytes = Buffer.from(text.slice(0, -40), 'latin1');
  bytes.writeUInt32BE(bytes.readUInt32BE(at) - 40, at);
  return bytes.toString('latin1');
}

async function exchange({ site }: Damage, a: string, b: string): Promise<void> {
  const [one, two] = [join(site, a), join(site, b)];
  await execute('mv', [one, `${one}.aside`]);
  await execute('mv', [two, one]);
  await execute('mv', [`${one}.aside`, two]);
}

function exchangeSegments(on: Damage): Promise<void> {
  return exchange(on, 'media/b/hls/v-36p/00001.m4s', 'media/b/hls/v-36p/00002.m4s');
}

function exchangeLabels(on: Damage): Promise<void> {
  return exchange(on, 'media/a/36p.mp4', 'media/a/90p.mp4');
}

async function dropLastSound({ edit, remove }: Damage): Promise<void> {
  await edit('media/b/hls/a-32.m3u8', (text) => text.replace(/#EXTINF[^#]*\n(?=#EXT-X-ENDLIST)/, ''));
  await remove('media/b/hls/a-32/00003.m4s');
}
