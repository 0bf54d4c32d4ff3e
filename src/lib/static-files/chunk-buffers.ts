// The buffers that files are sent from. They are reused once the socket is done with them: to allocate and zero new ones
// of this size would cost more than the copy itself. Clients that read slowly share a limited amount of memory: while they
// keep so much waiting, every further buffer is a small one.

const largeBytes = 256 * 1024;
const smallBytes = 16 * 1024;
const maxLentBytes = 32 * 1024 * 1024;
const maxSpare = { [largeBytes]: maxLentBytes / largeBytes, [smallBytes]: 512 };

const spare: Record<number, ArrayBufferLike[]> = { [largeBytes]: [], [smallBytes]: [] };
let lentBytes = 0;

export function lendBuffer(): Buffer {
  const size = lentBytes < maxLentBytes ? largeBytes : smallBytes;
  lentBytes += size;
  const reused = spare[size]!.pop();
  return reused ? Buffer.from(reused) : Buffer.allocUnsafeSlow(size);
}

/** Nothing reads or writes it any more. A view of it will do. */
export function returnBuffer({ buffer }: Buffer): void {
  const size = buffer.byteLength;
  lentBytes -= size;
  if (spare[size]!.length < maxSpare[size]!) spare[size]!.push(buffer);
}
