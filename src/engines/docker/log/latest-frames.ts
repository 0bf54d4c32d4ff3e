// The end of a container's log, read as a stream. Docker sends as many lines as one asks for, oldest first and of any
// length: only the latest frames that fit are kept.
import { EngineError } from '../../engine.ts';
import { headerLength, maxFrameBytes } from './frame-lines.ts';

export class LatestFrames {
  readonly #maxBytes: number;
  readonly #frames: Buffer[] = [];
  #keptBytes = 0;
  /** The beginning of a frame that has not arrived completely. */
  #rest = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  add(chunk: Buffer): void {
    let data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (data.length >= headerLength) {
      const length = headerLength + data.readUInt32BE(4);
      if (length > maxFrameBytes) throw new EngineError('unavailable', `Docker sent ${length} bytes of log at once`);
      if (data.length < length) break;
      this.#keep(data.subarray(0, length));
      data = data.subarray(length);
    }
    this.#rest = Buffer.from(data);
  }

  #keep(frame: Buffer): void {
    this.#frames.push(frame);
    this.#keptBytes += frame.length;
    while (this.#keptBytes > this.#maxBytes && this.#frames.length > 1) this.#keptBytes -= this.#frames.shift()!.length;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#frames);
  }
}
