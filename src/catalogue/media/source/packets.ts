// The packets that a source really has: when its picture and its sound end. A file that was cut off still states its full
// length, and some state none; so every packet is read once, which takes as long as copying the file.
import { CatalogueError } from '../../fault.ts';
import { type Ffmpeg, runFfmpeg, sourceInput } from '../ffmpeg.ts';
import { COMPLAINT_LEVEL, type Complaint } from './complaints.ts';
import type { SourceFile } from './source-file.ts';

export interface PacketTimes {
  /** Seconds from the start of the source to the end of the last frame. */
  videoEndS: number;
  /** The same for whatever lasts longest. */
  endS: number;
}

/** Reads the output of ffmpeg's framecrc format: time bases, then "stream, dts, pts, duration, size, checksum". */
export class PacketClock {
  #bases = new Map<number, number>();
  #ends = new Map<number, number>();
  #longest = new Map<number, number>();
  #rest = '';

  write(bytes: Buffer): void {
    const lines = (this.#rest + bytes.toString('latin1')).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#take(line);
  }

  #take(line: string): void {
    const base = /^#tb (\d+): (\d+)\/(\d+)/.exec(line);
    if (base !== null) this.#bases.set(Number(base[1]), Number(base[2]) / Number(base[3]));
    const packet = /^(\d+), *(-?\d+), *(-?\d+), *(\d+),/.exec(line);
    if (packet === null) return;
    const stream = Number(packet[1]);
    const unit = this.#bases.get(stream) ?? 0;
    // The last packet of some containers has no length; then it is shown as long as another.
    const length = Number(packet[4]) || (this.#longest.get(stream) ?? 0);
    this.#longest.set(stream, Math.max(length, this.#longest.get(stream) ?? 0));
    this.#ends.set(stream, Math.max(this.#ends.get(stream) ?? 0, (Number(packet[3]) + length) * unit));
  }

  get times(): PacketTimes {
    return { videoEndS: this.#ends.get(0) ?? 0, endS: Math.max(0, ...this.#ends.values()) };
  }
}

interface ReadOptions {
  signal?: AbortSignal | undefined;
  onComplaint?: (complaint: Complaint) => CatalogueError | null;
}

export async function readPackets(ffmpeg: Ffmpeg, source: SourceFile, options: ReadOptions): Promise<PacketTimes> {
  const clock = new PacketClock();
  const everything = ['-copy_unknown', '-map', '0:V:0', '-map', '0', '-c', 'copy', '-f', 'framecrc', '-'];
  const args = [...COMPLAINT_LEVEL, ...sourceInput(source), ...everything];
  await runFfmpeg(ffmpeg, args, { ...options, source, onOutput: (bytes) => clock.write(bytes) });
  if (clock.times.videoEndS <= 0) throw new CatalogueError(`${source.path} is not a video: it has no frame`);
  return clock.times;
}
