import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompressSync } from 'node:zlib';

const params = { [constants.ZSTD_c_compressionLevel]: 1 };

/** In a thread of its own. */
export const compress: (raw: Buffer) => Promise<Buffer> = (raw) => promisify(zstdCompress)(raw, { params });

export const decompress = (bytes: Uint8Array): Buffer => zstdDecompressSync(bytes);
