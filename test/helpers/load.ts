// Requests without a pause, as several clients send them: half over connections that are kept, half over new ones. What
// failed is remembered with its reason.
import { Agent, request } from 'node:http';

export interface Load {
  sent(): number;
  succeeded(): number;
  failures: string[];
  /** Resolves when every client has its last answer. */
  stop(): Promise<void>;
}

/** The API counts the requests of a token: within half a minute these do not reach its limit. */
const pauseMsOf = (url: string): number => (url.includes('/v1/') ? 150 : 20);

export function startLoad(urls: string[], headers: Record<string, string>, wanted = [200]): Load {
  const failures: string[] = [];
  let sent = 0;
  let succeeded = 0;
  let stopped = false;
  const client = async (url: string, agent: Agent) => {
    while (!stopped) {
      sent++;
      try {
        const status = await get(url, headers, agent);
        if (wanted.includes(status)) succeeded++;
        else failures.push(`${url}: ${status}`);
      } catch (error) {
        failures.push(`${url}: ${(error as NodeJS.ErrnoException).code} ${(error as Error).message}`);
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMsOf(url)));
    }
    agent.destroy();
  };
  const agents = [() => new Agent({ keepAlive: true }), () => new Agent({ keepAlive: false })];
  const clients = urls.flatMap((url) => agents.map((create) => client(url, create())));
  return {
    sent: () => sent,
    succeeded: () => succeeded,
    failures,
    async stop() {
      stopped = true;
      await Promise.all(clients);
    },
  };
}

function get(url: string, headers: Record<string, string>, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { headers, agent, timeout: 60_000 }, (response) => {
      response.on('error', reject).on('end', () => resolve(response.statusCode!));
      response.resume();
    })
      .on('timeout', function (this: { destroy(error: Error): void }) {
        this.destroy(new Error('no answer in 60 s'));
      })
      .on('error', reject)
      .end();
  });
}
