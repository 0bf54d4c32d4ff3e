// A worker, as the agent sees it: its connection, what it has in force, and when it was last heard of.
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { RouterState } from '../data-plane.ts';
import type { EnvironmentRoutes } from '../table.ts';
import { sendMessage, type ToWorker } from './protocol.ts';

const routesAtOnce = 100;
/** A worker that has said nothing for this long, though it is asked every second, does not respond. */
const silentMs = 10_000;

export interface HeldTable {
  version: number;
  environments: Map<string, EnvironmentRoutes>;
}

export class WorkerConnection {
  readonly id: string;
  readonly #socket: Socket;
  version: number;
  saidBye = false;
  heardAt = performance.now();
  #syncing: Promise<void> = Promise.resolve();
  #hasBegun = false;

  constructor(socket: Socket, id: string, version: number) {
    this.#socket = socket;
    this.id = id;
    this.version = version;
  }

  get state(): RouterState {
    return { id: this.id, version: this.version };
  }

  get responds(): boolean {
    return performance.now() - this.heardAt < silentMs;
  }

  send(message: ToWorker): boolean {
    return sendMessage(this.#socket, message);
  }

  /** Before the table, it would be taken for one that has nothing else in it; what is sent then has the change. */
  sendChange(version: number, routes: EnvironmentRoutes[]): void {
    if (this.#hasBegun) this.send({ type: 'change', version, routes });
  }

  /**
   * Sends the whole table, no faster than the worker takes it. Changes may be sent in between: each environment is read
   * when its turn comes, so nothing sent later is older.
   */
  sync(table: () => HeldTable): void {
    this.#syncing = this.#syncing.then(() => this.#sendWhole(table)).catch(() => this.end()); // it connects anew
  }

  async #sendWhole(table: () => HeldTable): Promise<void> {
    this.send({ type: 'begin' });
    this.#hasBegun = true;
    const keys = [...table().environments.keys()];
    for (let i = 0; i < keys.length; i += routesAtOnce) {
      const { environments } = table();
      const routes = keys.slice(i, i + routesAtOnce).flatMap((key) => environments.get(key) ?? []);
      if (!this.send({ type: 'routes', routes })) await this.#drained();
    }
    this.send({ type: 'end', version: table().version });
  }

  async #drained(): Promise<void> {
    if (this.#socket.destroyed) throw new Error('disconnected');
    if (this.#socket.writableNeedDrain) await once(this.#socket, 'drain');
  }

  end(): void {
    this.#socket.destroy();
  }
}
