// A port for a program that is to be told one. The kernel gives it to nobody, as it is outside the range for outgoing
// connections and for port 0, and no instance gets it. An abstract socket of its name keeps it from other test processes for
// as long as this one lives, also while its program restarts.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ListenOptions, type Server } from 'node:net';

const first = 11_000;
const last = 19_999;
const attempts = 100;

export async function freePort(): Promise<number> {
  for (let i = 0; i < attempts; i++) {
    const port = randomInt(first, last + 1);
    const mine = await listening({ path: `\0sluice-test-port-${port}` });
    if (mine === undefined) continue;
    const server = await listening({ port, host: '127.0.0.1' });
    if (server === undefined) {
      mine.close();
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
  throw new Error(`no port from ${first} to ${last} was free in ${attempts} attempts`);
}

/** Of one app. One that is used is given again only after minutes, so this is more than the tests of a file use. */
const instancePorts = 250;
const firstInstancePort = 20_000;
const blocks = 40;

/**
 * Ports for the instances of an app, which no other app of these tests gets: a connection to an instance that does not
 * listen must not reach an instance of another test.
 */
export async function reserveInstancePorts(): Promise<{ range: string; release(): void }> {
  for (let i = 0; i < 10 * blocks; i++) {
    const first = firstInstancePort + randomInt(blocks) * instancePorts;
    const mine = await listening({ path: `\0sluice-test-instances-${first}` });
    if (mine) return { range: `${first}-${first + instancePorts - 1}`, release: () => void mine.close() };
  }
  throw new Error(`other tests have all ports from ${firstInstancePort} for their instances`);
}

/** Undefined: something else has that address. */
async function listening(at: ListenOptions): Promise<Server | undefined> {
  const server = createServer().listen(at).unref();
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined;
    throw error;
  }
}
