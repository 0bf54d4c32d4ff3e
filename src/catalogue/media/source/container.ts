// Which container a file is, decided by its bytes and never by its name. ffmpeg is told this demuxer and no other: left to
// itself it would take a playlist, a DASH manifest or a concat script for a video, and publish the files they name. Every
// container here holds its media itself.

/** Bytes read from the start of a file to recognise it. */
export const HEAD_BYTES = 4096;

const TS_PACKET_BYTES = 188;
const isoBoxes = ['ftyp', 'styp', 'moov', 'mdat', 'moof', 'sidx', 'free', 'skip', 'wide', 'pnot'];

const starts = (hex: string, at = 0) => {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex');
  return (head: Buffer) => head.subarray(at, at + bytes.length).equals(bytes);
};
const says = (text: string, at = 0) => starts(Buffer.from(text, 'latin1').toString('hex'), at);

/** A sync byte at the same place of several packets in a row; a recording may begin in the middle of one. */
function isTransportStream(head: Buffer): boolean {
  for (const size of [TS_PACKET_BYTES, TS_PACKET_BYTES + 4]) {
    for (let first = 0; first < size; first++) {
      const syncs = [0, 1, 2, 3, 4].filter((i) => head[first + i * size] === 0x47);
      if (syncs.length === 5) return true;
    }
  }
  return false;
}

/** The header of the first unit of a raw H.264 or HEVC stream, after its start code. */
function firstUnit(head: Buffer): Buffer | null {
  if (starts('00 00 00 01')(head)) return head.subarray(4, 6);
  return starts('00 00 01')(head) ? head.subarray(3, 5) : null;
}

/** Parameter sets, supplemental information and access unit delimiters: what a raw stream can begin with. */
const isRawH264 = (head: Buffer) => [0x67, 0x27, 0x47, 0x06, 0x09].includes(firstUnit(head)?.[0] ?? 0);
const isRawHevc = (head: Buffer) => {
  const unit = firstUnit(head);
  return unit !== null && [0x40, 0x42, 0x44, 0x46, 0x4e].includes(unit[0]!) && unit[1] === 0x01;
};

/** ffmpeg's name of the demuxer, and how its files begin. The first that matches is taken. */
const containers: [demuxer: string, matches: (head: Buffer) => boolean][] = [
  ['mov', (head) => isoBoxes.includes(head.toString('latin1', 4, 8))],
  ['matroska', starts('1a 45 df a3')],
  ['avi', (head) => says('RIFF')(head) && says('AVI ', 8)(head)],
  ['flv', says('FLV\x01')],
  ['asf', starts('30 26 b2 75 8e 66 cf 11')],
  ['ogg', says('OggS')],
  ['mxf', starts('06 0e 2b 34 02 05 01 01')],
  ['gxf', starts('00 00 00 00 01 bc')],
  ['wtv', starts('b7 d8 00 20 37 49 da 11')],
  ['nut', says('nut/multimedia container\0')],
  ['rm', says('.RMF')],
  ['ivf', says('DKIF')],
  ['yuv4mpegpipe', says('YUV4MPEG2 ')],
  ['gif', says('GIF8')],
  ['mpeg', starts('00 00 01 ba')],
  ['mpegvideo', starts('00 00 01 b3')],
  ['dv', starts('1f 07 00')],
  ['hevc', isRawHevc],
  ['h264', isRawH264],
  ['mpegts', isTransportStream],
];

/** The demuxer for a file that begins with these bytes, or null where it is no video container. */
export function demuxerOf(head: Buffer): string | null {
  return containers.find(([, matches]) => matches(head))?.[0] ?? null;
}
