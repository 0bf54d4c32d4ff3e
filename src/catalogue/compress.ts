// Each text file has compressed copies beside it (`x.br`, `x.gz`), for servers that send such files as they are.
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

/** A smaller text fits into one packet anyway. */
const minBytes = 1000;
/** Above this size brotli's best quality takes seconds, for about one percent. */
const maxBestBrotliBytes = 128 * 1024;

export const isText = (path: string) => /\.(json|m3u8|vtt|html|css|js|txt|svg)$|(^|\/)SHA256SUMS$/.test(path);

/** The compressed forms of a text that are smaller than the text itself. */
export async function compressedForms(bytes: Buffer): Promise<{ suffix: '.br' | '.gz'; bytes: Buffer }[]> {
  if (bytes.length < minBytes) return [];
  const quality = bytes.length > maxBestBrotliBytes ? 9 : 11;
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(bytes, { params }),
    promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION }),
  ]);
  const forms = [
    { suffix: '.br' as const, bytes: br },
    { suffix: '.gz' as const, bytes: gz },
  ];
  return forms.filter((form) => form.bytes.length < bytes.length);
}
