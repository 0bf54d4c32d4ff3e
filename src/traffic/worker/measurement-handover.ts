// Hands what a worker measured over to the agent, one batch at a time. A batch that is not acknowledged, because the
// connection or the database was lost, goes back and comes again; numbers are absolute, so it does no harm if it had
// been stored. What is left at the end is written to disk, and handed over by the worker that starts next.
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Measurement, TrafficCounter } from '../measurements.ts';
import type { AgentLink } from './agent-link.ts';

interface Kept {
  router: string;
  measurements: Measurement[];
}

interface Sent {
  batch: number;
  settle(stored: boolean): void;
}

export class MeasurementHandover {
  readonly #id: string;
  readonly #counter: TrafficCounter;
  readonly #dir: string;
  #batches = 0;
  #sent: Sent | null = null;
  /** Of workers that ended before they could hand it over. */
  #inherited: { file: string; kept: Kept }[];

  constructor(id: string, counter: TrafficCounter, routingDir: string) {
    this.#id = id;
    this.#counter = counter;
    this.#dir = join(routingDir, 'measured');
    this.#inherited = this.#claim();
  }

  /** Sends the next batch, unless one is on its way. */
  send(link: AgentLink): void {
    if (this.#sent || !link.isConnected) return;
    const next = this.#nextInherited() ?? this.#nextOwn();
    if (!next) return;
    const { router, measurements, settle } = next;
    this.#sent = { batch: ++this.#batches, settle };
    link.send({ type: 'measured', batch: this.#batches, router, measurements });
  }

  settled(batch: number, stored: boolean): void {
    if (this.#sent?.batch !== batch) return;
    this.#settle(stored);
  }

  /** The connection is gone, and with it any acknowledgement. */
  lost(): void {
    if (this.#sent) this.#settle(false);
  }

  get isEmpty(): boolean {
    if (this.#sent || this.#inherited.length > 0) return false;
    const batch = this.#counter.take();
    batch?.settle(false);
    return batch === null;
  }

  /** Writes what was not acknowledged to disk. */
  keep(): void {
    this.lost();
    const measurements: Measurement[] = [];
    for (let batch = this.#counter.take(); batch; batch = this.#counter.take())
      measurements.push(...batch.measurements);
    if (measurements.length === 0) return;
    mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    const path = join(this.#dir, `${randomUUID()}.json`);
    writeFileSync(`${path}.part`, JSON.stringify({ router: this.#id, measurements } satisfies Kept), { mode: 0o600 });
    renameSync(`${path}.part`, path);
  }

  #settle(stored: boolean): void {
    const { settle } = this.#sent!;
    this.#sent = null;
    settle(stored);
  }

  #nextOwn() {
    const taken = this.#counter.take();
    return taken && { router: this.#id, ...taken };
  }

  #nextInherited() {
    const [next] = this.#inherited;
    if (!next) return null;
    const settle = (stored: boolean) => {
      if (!stored) return;
      rmSync(next.file, { force: true });
      this.#inherited = this.#inherited.filter((one) => one !== next);
    };
    return { ...next.kept, settle };
  }

  /** Two workers may both read a file: it is handed over twice, which counts once. */
  #claim(): { file: string; kept: Kept }[] {
    let names: string[];
    try {
      names = readdirSync(this.#dir).filter((name) => name.endsWith('.json'));
    } catch {
      return [];
    }
    return names.flatMap((name) => {
      const file = join(this.#dir, name);
      try {
        return [{ file, kept: JSON.parse(readFileSync(file, 'utf8')) as Kept }];
      } catch {
        return []; // another worker has handed it over meanwhile
      }
    });
  }
}
