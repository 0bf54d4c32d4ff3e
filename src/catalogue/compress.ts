// Each text file has compressed copies beside it (`x.br`, `x.gz`), for servers that send such files as they are. Small
// playlists too: Apple's authoring rules (10.1) want every one of them compressed.
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { HEALTH_PATH } from './site-paths.ts';

/** Above this size brotli's best quality takes seconds, for about one percent. */
const maxBestBrotliBytes = 128 * 1024;
/** A text of this size always becomes smaller. */
const alwaysSmallerBytes = 1000;

export const formSuffixes = ['.br', '.gz'] as const;
type FormSuffix = (typeof formSuffixes)[number];

export const isText = (path: string) => /\.(json|m3u8|vtt|html|css|js|txt|svg)$|(^|\/)SHA256SUMS$/.test(path);

/** The texts that are published with compressed forms; three bytes of health do not become fewer. */
export const hasForms = (path: string) => isText(path) && path !== HEALTH_PATH;

/** Whether a text without compressed forms lacks something. */
export const needsForms = (bytes: Buffer) => bytes.length >= alwaysSmallerBytes;

/** The compressed forms of a text that are smaller than the text itself. */
export async function compressedForms(bytes: Buffer): Promise<{ suffix: FormSuffix; bytes: Buffer }[]> {
  const quality = bytes.length > maxBestBrotliBytes ? 9 : 11;
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(bytes, { params }),
    promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION }),
  ]);
  const forms: { suffix: FormSuffix; bytes: Buffer }[] = [
    { suffix: '.br', bytes: br },
    { suffix: '.gz', bytes: gz },
  ];
  return forms.filter((form) => form.bytes.length < bytes.length);
}
