// Everything is published as BT.709 with limited range, and says so. Which filters bring a source there: nothing for
// most, another matrix for old video, tone mapping for HDR. Pure.
import { CatalogueError } from '../catalogue-error.ts';

export interface Colour {
  /** ffmpeg's name of the pixel format. */
  pixels: string;
  /** Luma from 0 to 255 instead of 16 to 235. */
  full: boolean;
  matrix: string;
  primaries: string;
  transfer: string;
  /** The brightest that HDR video says it holds. */
  peakNits: number;
  /** Dolby Vision that cannot be shown as anything else. */
  dolbyOnly: boolean;
}

/** Tags of every video we make. */
export const colourTags = [
  ...['-color_primaries', 'bt709', '-color_trc', 'bt709', '-colorspace', 'bt709', '-color_range', 'tv'],
];
const tagged = 'setparams=color_primaries=bt709:color_trc=bt709:colorspace=bt709:range=tv';

/** Transfer curves of HDR10 and HLG. */
const hdrTransfers = ['smpte2084', 'arib-std-b67'];
const wideGamut = ['bt2020', 'smpte432', 'smpte431'];
/** The brightness of SDR white in HDR video, in nits (ITU-R BT.2408). */
const WHITE_NITS = 203;
/** Up to this share of white nothing is compressed: white comes out at 94 %, and highlights share the rest. */
const LINEAR_UP_TO = 0.75;

const isHdr = (colour: Colour) => hdrTransfers.includes(colour.transfer);
const isWide = (colour: Colour) => wideGamut.includes(colour.primaries);
const isRgb = (colour: Colour) => /^(gbr|rgb|bgr|argb|abgr|rgba|bgra|pal8|0rgb|0bgr)/.test(colour.pixels);

/** Filters beyond the ordinary that a source needs. */
function neededFilters(colour: Colour): string[] {
  if (isHdr(colour)) return ['zscale', 'tonemap'];
  return isWide(colour) ? ['zscale'] : [];
}

export function checkColours(name: string, colour: Colour, available: (filter: string) => boolean): void {
  if (colour.dolbyOnly) throw new CatalogueError(`${name} is Dolby Vision without HDR10, which ffmpeg cannot convert`);
  const lacking = neededFilters(colour).filter((name) => !available(name));
  if (lacking.length === 0) return;
  const kind = isHdr(colour) ? `HDR (${colour.transfer})` : `wide gamut (${colour.primaries})`;
  throw new CatalogueError(
    `${name} is ${kind}, and this ffmpeg lacks ${lacking.join(' and ')} to convert it to SDR; ` +
      'use one that was built with libzimg, or convert the source first',
  );
}

/** Values that zscale knows and the source states; what a source leaves out is BT.2020, as HDR always is. */
function zscaleInput(colour: Colour): string {
  const matrix = colour.matrix === 'bt2020c' ? '2020_cl' : colour.matrix === 'bt709' ? '709' : '2020_ncl';
  const primaries = { bt709: '709', smpte432: 'smpte432', smpte431: 'smpte431' }[colour.primaries] ?? '2020';
  const transfer = isHdr(colour) ? colour.transfer : '709';
  return `tin=${transfer}:min=${matrix}:pin=${primaries}:rin=${colour.full ? 'full' : 'limited'}`;
}

const limited = 'zscale=t=709:m=709:p=709:r=limited';

/** The matrix of a source that does not state one is that of its time: BT.601 up to standard definition. */
function matrixOf(colour: Colour, lines: number): string {
  if (['smpte170m', 'bt470bg', 'fcc'].includes(colour.matrix)) return 'bt601';
  if (colour.matrix === 'smpte240m') return 'smpte240m';
  if (colour.matrix === 'unknown' || colour.matrix === 'reserved') return lines <= 576 ? 'bt601' : 'bt709';
  return 'bt709';
}

/**
 * Formats that ffmpeg calls `yuvj…` have full range by their name alone: a filter that converts the range must leave them in
 * the same step, or the next one converts it again.
 */
const limitedFormat = (colour: Colour) =>
  /420|nv12|nv21|p010/.test(colour.pixels) ? 'format=yuv420p' : 'format=yuv444p';

const zscaleMatrices: Record<string, string> = { bt601: '170m', bt709: '709' };

/**
 * From the colours of the source to BT.709 with its tags. `lines`: of the shorter side, so that video turned upright counts as
 * what it was. `precise`: zscale can be used, which rounds once, not twice.
 */
export function toBt709(colour: Colour, lines: number, precise: boolean): string[] {
  if (isHdr(colour)) {
    const linear = `zscale=${zscaleInput(colour)}:t=linear:npl=${WHITE_NITS}`;
    const curve = `tonemap=tonemap=mobius:param=${LINEAR_UP_TO}:desat=0:peak=${(colour.peakNits / WHITE_NITS).toFixed(3)}`;
    const mapped = ['format=gbrpf32le', 'zscale=p=709', curve, limited];
    return [linear, ...mapped, 'format=yuv420p', tagged];
  }
  if (isWide(colour)) return [`${limited}:${zscaleInput(colour)}`, 'format=yuv420p', tagged];
  if (isRgb(colour))
    return ['scale=out_color_matrix=bt709:out_range=tv:flags=accurate_rnd+full_chroma_int', 'format=yuv444p', tagged];
  const matrix = matrixOf(colour, lines);
  if (matrix === 'bt709' && !colour.full) return [tagged];
  const format = limitedFormat(colour);
  if (precise && matrix in zscaleMatrices) {
    const from = `min=${zscaleMatrices[matrix]}:rin=${colour.full ? 'full' : 'limited'}`;
    return [`zscale=${from}:m=709:r=limited`, format, tagged];
  }
  const range = colour.full ? 'pc' : 'tv';
  return [`scale=in_color_matrix=${matrix}:out_color_matrix=bt709:in_range=${range}:out_range=tv`, format, tagged];
}

/** What sound without a picture is shown with. */
export const plainGround = (width: number, height: number, fps: number) => [
  `color=c=0x17222b:s=${width}x${height}:r=${fps}`,
  'format=yuv420p',
  tagged,
];

/** JPEG files have the matrix of BT.601 and full range, and no way to say anything else. */
export const TO_JPEG = 'in_color_matrix=bt709:out_color_matrix=bt601:in_range=tv:out_range=pc';
