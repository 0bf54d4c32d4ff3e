// An instance behind the proxy, with the connections that are kept to it.
import { Pool } from '../../lib/undici.ts';
import type { Candidate } from '../balance.ts';
import type { Target } from '../table.ts';
import type { ProxyLimits } from './limits.ts';

export class Instance implements Candidate {
  underWay = 0;
  ejectedUntil = 0;
  readonly #origin: string;
  readonly #limits: ProxyLimits;
  #pool: Pool | null = null;

  constructor({ host, port }: Target, limits: ProxyLimits) {
    this.#origin = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
    this.#limits = limits;
  }

  /** Created with the first request: most environments of a large installation are idle. */
  pool(): Pool {
    this.#pool ??= new Pool(this.#origin, {
      connectTimeout: this.#limits.connectMs,
      headersTimeout: this.#limits.answerHeadMs,
      bodyTimeout: this.#limits.idleMs,
      keepAliveTimeout: this.#limits.instanceKeepAliveMs,
      maxHeaderSize: this.#limits.headerBytes,
      allowH2: false,
    });
    return this.#pool;
  }

  /** Lets requests under way finish; resolves when the last connection is closed. */
  async retire(): Promise<void> {
    await this.#pool?.close().catch(() => {});
  }

  destroy(): Promise<void> {
    return this.#pool?.destroy() ?? Promise.resolve();
  }
}
