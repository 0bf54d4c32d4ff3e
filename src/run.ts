// The control process: the app, and the orders of the supervisor that started it.
import { type App, createApp } from './app.ts';
import { addressOf, type Config, readConfig, unknownSettings } from './config.ts';
import { recordAddress } from './data-dir.ts';
import { greet } from './greet.ts';
import { type ListenAt, portOf } from './lib/connections.ts';
import { explainStart } from './lib/start-error.ts';
import { startHeartbeat, waitForSuccessors } from './lib/supervised.ts';
import type { ChildReport, ControlOrder, ControlSettings } from './supervisor/supervisor-protocol.ts';

type Env = Record<string, string | undefined>;

const say = (said: ChildReport): Promise<void> =>
  new Promise((resolve) => {
    if (process.connected) process.send!(said, undefined, {}, () => resolve());
    else resolve();
  });

export async function run(env: Env, isTerminal: boolean): Promise<void> {
  const orders: ControlSettings = JSON.parse(env.SLUICE_CONTROL!);
  // A terminal sends these to every process it started. What they mean is up to the supervisor.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  const goneEarly = () => process.exit(1);
  process.on('disconnect', goneEarly);
  try {
    const config = readConfig(env, isTerminal);
    if (orders.waits) await startOrder();
    const control = new ControlProcess(config, orders, isTerminal);
    const app = await control.serve({ fd: 3 });
    for (const name of unknownSettings(env)) app.log.warn({ setting: name }, 'there is no such setting');
    process.off('disconnect', goneEarly);
    control.listenToOrders();
    await say({ ready: true });
  } catch (error) {
    const { lines, exitCode } = explainStart(error);
    for (const line of lines) process.stderr.write(`sluice: ${line}\n`);
    await say({ failed: lines[0]!.split('\n', 1)[0]! });
    // What was opened before it failed would keep the process alive, and with it the ports that the next one needs.
    process.exit(exitCode);
  }
}

async function startOrder(): Promise<void> {
  const ordered = new Promise<void>((resolve) => {
    process.on('message', function onOrder(message: ControlOrder) {
      if (message.order !== 'start') return;
      process.off('message', onOrder);
      resolve();
    });
  });
  await say({ standby: true });
  await ordered;
}

class ControlProcess {
  readonly #config: Config;
  readonly #orders: ControlSettings;
  readonly #isTerminal: boolean;
  #app!: App;
  #recorded: { forget(): void } | null = null;
  #stopping = false;

  constructor(config: Config, orders: ControlSettings, isTerminal: boolean) {
    this.#config = config;
    this.#orders = orders;
    this.#isTerminal = isTerminal;
  }

  async serve(apiSocket: ListenAt): Promise<App> {
    const routerWorkers = this.#orders.routerWorkers ?? undefined;
    const app = await createApp(this.#config, { apiSocket, routerWorkers });
    this.#app = app;
    const { host, dataDir, roles } = this.#config;
    // Where it is reached on this machine, whatever its public address is.
    const url = addressOf(host, portOf(app.server.server));
    this.#recorded = roles.includes('api') ? recordAddress(dataDir, url) : null;
    return app;
  }

  listenToOrders(): void {
    process.on('message', ({ order }: ControlOrder, socket) => {
      if (order === 'greet') greet(this.#app, this.#orders.routerLine, this.#isTerminal);
      else if (order === 'release') void this.#release();
      else if (order === 'resume') void this.#resume({ _handle: socket as object });
      else if (order === 'retire') void this.#retire();
    });
    process.on('SIGTERM', () => void this.#stop('SIGTERM'));
    process.on('disconnect', () => {
      // Until it has ended, the next supervisor may find its port in use.
      void waitForSuccessors(this.#orders.supervisorSocket, () => []);
      void this.#stop('the supervisor is gone');
    });
    startHeartbeat(() => this.#trouble);
  }

  /** A step of a background loop cannot be ended from outside: where one hangs, only a new process goes on. */
  get #trouble(): string | null {
    const [stuck] = this.#stopping ? [] : this.#app.loops.stuck();
    return stuck ? `the loop "${stuck.name}" hangs for ${Math.round(stuck.forMs / 1000)} s` : null;
  }

  async #release(): Promise<void> {
    await this.#app.release({ moveOver: true });
    await say({ released: true });
  }

  /** The process that was to take over has failed. Requests that were under way end meanwhile as they would have. */
  async #resume(apiSocket: ListenAt): Promise<void> {
    void this.#app.stop();
    try {
      await this.serve(apiSocket);
      await say({ resumed: true });
    } catch (error) {
      this.#app.log.error({ err: error }, 'cannot start again');
      process.exit(1);
    }
  }

  async #retire(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    await this.#app.release({ moveOver: true });
    this.#app.log.info('replaced: ends when the requests under way have ended');
    await this.#end();
  }

  async #stop(reason: string): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#app.log.info({ reason }, 'stopping');
    this.#recorded?.forget();
    // Connections that come now are for the next process, if there is to be one.
    await this.#app.release({ moveOver: this.#orders.socketsOutlive || !process.connected });
    await say({ released: true });
    await this.#end();
  }

  async #end(): Promise<void> {
    await this.#app.stop();
    this.#app.log.info('stopped');
    this.#app.log.flush(() => process.exit(0));
  }
}
