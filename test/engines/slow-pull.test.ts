// A pull over a slow line: as long as it makes progress it goes on, until the time it may take in all is over.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { createDockerEngine } from '../../src/engines/docker/docker.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker, type TestRegistry } from '../helpers/docker.ts';
import { ids } from '../helpers/instances.ts';
import { isFault } from './faults.ts';

const layerBytes = 6 * 1024 * 1024;
const bytesPerSecond = 700 * 1024;

describe('a slow pull', { skip: dockerMissing }, () => {
  let docker: TestDocker;
  let registry: TestRegistry;
  let line: { server: Server; host: string };

  before(async () => {
    [docker, registry] = await Promise.all([startDocker(), startRegistry()]);
    line = await slowLine(registry.host);
    await pushLarge(docker, registry);
  });
  after(async () => {
    line?.server.close();
    await docker?.stop();
    await registry?.stop();
  });

  const pullWith = async (timeouts: { pull: number; pullSilence: number }) => {
    const engine = await createDockerEngine({ address: docker.socket, installation: ids('installation'), timeouts });
    try {
      return await engine.prepare(`${line.host}/large:v1`, {});
    } finally {
      await engine.close();
    }
  };

  test('fails once its time in all is over, progress or not', async () => {
    await assert.rejects(pullWith({ pull: 2_000, pullSilence: 60_000 }), isFault('unavailable'));
  });

  test('goes on while it makes progress, for longer than it may be silent', async () => {
    const pullSilence = 5_000;
    const begun = performance.now();
    const { digest } = await pullWith({ pull: 120_000, pullSilence });
    assert.match(digest, /^sha256:/);
    assert.ok(performance.now() - begun > pullSilence, 'it was slow');
  });
});

/** Bytes of no pattern, which cannot be compressed. */
async function pushLarge({ client }: TestDocker, registry: TestRegistry): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-large-'));
  try {
    writeFileSync(join(folder, 'bytes'), randomBytes(layerBytes));
    const layer = execFileSync('tar', ['-cf', '-', '-C', folder, '.'], { maxBuffer: 2 * layerBytes });
    const repo = `${registry.host}/large`;
    await client.importImage(Readable.from([layer]), { repo, tag: 'v1' });
    const image = client.getImage(`${repo}:v1`);
    await image.push({ username: '', password: '', serveraddress: '' });
    await image.remove({ force: true });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The same registry at another address, whose answers take their time. */
async function slowLine(registry: string): Promise<{ server: Server; host: string }> {
  const [host, port] = registry.split(':');
  const server = createServer((incoming) => {
    const outgoing = connect(Number(port), host);
    incoming.pipe(outgoing);
    outgoing.pipe(throttle()).pipe(incoming);
    const cut = (other: Socket) => () => other.destroy();
    incoming.on('error', cut(outgoing)).on('close', cut(outgoing));
    outgoing.on('error', cut(incoming));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, host: `127.0.0.1:${(server.address() as { port: number }).port}` };
}

function throttle(): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      setTimeout(() => done(null, chunk), (1000 * chunk.length) / bytesPerSecond);
    },
  });
}
