// The map of hosts as the running HAProxy has it in memory. The file of the same name is what it starts with.
import { ask, runCommands } from './control.ts';
import { readMap } from './folder.ts';

export class RunningHosts {
  readonly #adminSocket: string;
  readonly #map: string;
  #values = new Map<string, string>();

  constructor(adminSocket: string, map: string) {
    this.#adminSocket = adminSocket;
    this.#map = map;
  }

  /** Learns what HAProxy has, after it was started, reloaded or found again. */
  async read(): Promise<void> {
    const entries = await ask(this.#adminSocket, `show map ${this.#map}`);
    this.#values = readMap(entries.replace(/^0x\S+ /gm, ''));
  }

  names(): string[] {
    return [...this.#values.keys()];
  }

  /** By host; null: it goes. */
  async change(wanted: ReadonlyMap<string, string | null>): Promise<void> {
    const changes = [...wanted].filter(([host, value]) => (this.#values.get(host) ?? null) !== value);
    await runCommands(
      this.#adminSocket,
      changes.map(([host, value]) => {
        if (value === null) return `del map ${this.#map} ${host}`;
        return `${this.#values.has(host) ? 'set' : 'add'} map ${this.#map} ${host} ${value}`;
      }),
    );
    for (const [host, value] of changes) {
      if (value === null) this.#values.delete(host);
      else this.#values.set(host, value);
    }
  }
}
