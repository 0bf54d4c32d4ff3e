// Gathers what a stream sends into larger pieces. Docker sends each line of a log by itself, and every step of an
// asynchronous loop leaves objects behind, which for a program that prints a lot would take more memory than its lines.
// So bytes are gathered in buffers that are reused, and taken together, at most every few milliseconds.
import { finished, type Readable } from 'node:stream';

/** So many are taken at once, whatever the time. */
const enoughBytes = 128 * 1024;
const leastBytes = 4096;
const pauseMs = 5;

export class ChunkGatherer {
  readonly #stream: Readable;
  #filling = Buffer.allocUnsafeSlow(leastBytes);
  #spare = Buffer.allocUnsafeSlow(leastBytes);
  #length = 0;
  #takenAt = Number.NEGATIVE_INFINITY;
  #end: { error: Error | null } | null = null;
  #wake: (() => void) | null = null;

  constructor(stream: Readable) {
    this.#stream = stream;
    stream.on('data', (chunk: Buffer) => this.#append(chunk));
    finished(stream, { writable: false }, (error) => {
      this.#end = { error: error ?? null };
      this.#wake?.();
    });
  }

  /** What has come; it is good until the next call. Rejects where the stream broke off. */
  async next(quietMs = Number.POSITIVE_INFINITY): Promise<Buffer | 'quiet' | 'end'> {
    await this.#until(quietMs, () => this.#length > 0);
    if (this.#length === 0) {
      if (!this.#end) return 'quiet';
      if (this.#end.error) throw this.#end.error;
      return 'end';
    }
    await this.#until(this.#takenAt + pauseMs - performance.now(), () => this.#isEnough());
    return this.#take();
  }

  #isEnough(): boolean {
    return this.#length >= enoughBytes || this.#end !== null;
  }

  /** Until it is so, the stream has ended, or the time is over. */
  async #until(waitMs: number, isSo: () => boolean): Promise<void> {
    if (waitMs <= 0 || isSo() || this.#end) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = Number.isFinite(waitMs) ? setTimeout(resolve, waitMs) : null;
    this.#wake = () => {
      if (isSo() || this.#end) resolve();
    };
    await promise;
    this.#wake = null;
    if (timer) clearTimeout(timer);
  }

  #append(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#filling.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#filling.length));
      this.#filling.copy(larger, 0, 0, this.#length);
      this.#filling = larger;
    }
    chunk.copy(this.#filling, this.#length);
    this.#length = needed;
    if (needed >= enoughBytes) this.#stream.pause();
    this.#wake?.();
  }

  #take(): Buffer {
    const taken = this.#filling.subarray(0, this.#length);
    // After a burst the memory for it is let go.
    const isRoomy = this.#length < this.#spare.length / 16;
    const next = isRoomy ? Buffer.allocUnsafeSlow(leastBytes) : this.#spare;
    this.#spare = this.#filling;
    this.#filling = next;
    this.#length = 0;
    this.#takenAt = performance.now();
    if (this.#stream.isPaused()) this.#stream.resume();
    return taken;
  }
}
