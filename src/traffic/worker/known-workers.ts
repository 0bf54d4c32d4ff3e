// The workers that ran last, by id, with their process ids. An agent that follows after a crash of everything can tell by
// them which routers have ended, and nobody waits for the leases of those.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export class KnownWorkers {
  readonly #path: string;
  readonly #pids: Map<string, number>;

  constructor(routingDir: string) {
    this.#path = join(routingDir, 'workers.json');
    this.#pids = new Map(readPids(this.#path));
  }

  add(id: string, pid: number): void {
    this.#pids.set(id, pid);
    this.#write();
  }

  delete(id: string): void {
    if (this.#pids.delete(id)) this.#write();
  }

  /** Those whose process is gone. */
  ended(): string[] {
    return [...this.#pids].filter(([, pid]) => !isRunning(pid)).map(([id]) => id);
  }

  /** The list only saves time: without it, leases run out. */
  #write(): void {
    try {
      writeFileSync(this.#path, JSON.stringify([...this.#pids]), { mode: 0o600 });
    } catch {
      // The next change writes it again.
    }
  }
}

function readPids(path: string): [string, number][] {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return [];
  }
}

/** Another process may have got the number: then the lease has to run out. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
