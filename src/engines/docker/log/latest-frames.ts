// The end of a container's log, read as a stream. Docker sends as many lines as one asks for, oldest first and of any
// length: only the latest frames that fit are kept.
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { EngineError } from '../../engine.ts';

const headerLength = 8;
/** Docker's own are a little over 16 KiB. */
const maxFrameBytes = 1024 * 1024;

interface LogWindow {
  tail: number;
  sinceMs: number;
  maxBytes: number;
  abortSignal: AbortSignal;
}

export async function readLatestFrames(docker: Docker, container: string, window: LogWindow): Promise<Buffer> {
  const frames = new LatestFrames(window.maxBytes);
  for await (const chunk of await openLog(docker, container, window)) frames.add(chunk as Buffer);
  return frames.bytes();
}

function openLog(docker: Docker, container: string, { tail, sinceMs, abortSignal }: LogWindow): Promise<Readable> {
  const options = { stdout: true, stderr: true, timestamps: true, tail, since: sinceMs / 1000 };
  const path = `/containers/${container}/logs?`; // dockerode replaces what follows the question mark
  const statusCodes = { 200: true as const, 404: 'no such container', 500: 'server error' };
  return new Promise((resolve, reject) => {
    docker.modem.dial({ path, options, method: 'GET', isStream: true, abortSignal, statusCodes }, (error, stream) =>
      error ? reject(error) : resolve(stream as Readable),
    );
  });
}

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
