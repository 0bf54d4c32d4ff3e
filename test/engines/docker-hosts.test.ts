// Three Docker hosts as one engine, each a real dockerd: the suite of all engines, and what happens when one of them goes away.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pino } from 'pino';
import { findInstallation } from '../../src/db/installation.ts';
import { createDockerEngine } from '../../src/engines/docker/docker.ts';
import { connectDocker, defaultDockerTimeouts } from '../../src/engines/docker/docker-client.ts';
import { openDockerHosts } from '../../src/engines/docker/hosts/docker-hosts.ts';
import { ProjectNetworks } from '../../src/engines/docker/project-networks.ts';
import { defaultSubnetPool, parseSubnetPool } from '../../src/engines/docker/subnets.ts';
import { runSets } from '../../src/engines/engine.ts';
import { adminToken, startApp, type TestApp } from '../helpers/app.ts';
import { cli } from '../helpers/cli.ts';
import { dockerMissing, startDocker, startRegistry, type TestDocker } from '../helpers/docker.ts';
import { hangingDocker } from '../helpers/hanging-docker.ts';
import { type ImageKind, pushImage } from '../helpers/images.ts';
import { ids, specOf, startReady } from '../helpers/instances.ts';
import { Shop } from '../helpers/shop.ts';
import { until } from '../helpers/wait.ts';
import { type EngineFixtures, engineConformance } from './conformance.ts';
import { isFault } from './faults.ts';

const hour = 3_600_000;
/** A host that hangs is noticed soon, and one on a busy machine is not taken for it. A call that waited for it would show. */
const timeouts = { probe: 5000, read: 60_000, change: 60_000, usage: 60_000 };

async function setUp() {
  const [registry, ...dockers] = await Promise.all([startRegistry(), startDocker(), startDocker(), startDocker()]);
  const image: Partial<Record<ImageKind, string>> = {};
  for (const kind of ['web', 'exits', 'stubborn', 'chatty'] as const) {
    image[kind] = await pushImage(dockers[0]!, registry, kind);
  }
  const of = (kind: ImageKind) => ({ image: image[kind]!, variables: {} });
  const create = (installation: string, graceMs = hour, of: { socket: string }[] = dockers) =>
    openDockerHosts(
      of.map(({ socket }) => ({ address: socket, installation, timeouts })),
      graceMs,
    );
  const fixtures: EngineFixtures = {
    create: async (installation) => runSets(await create(installation)),
    outlivesProcess: true,
    web: of('web'),
    missing: { image: `${registry.host}/missing:v1`, variables: {} },
    exits: { ...of('exits'), exitCode: 3 },
    stubborn: of('stubborn'),
    chatty: { ...of('chatty'), lines: 23 },
    outage: {
      begin: async () => void (await Promise.all(dockers.map((docker) => docker.pause()))),
      end: async () => void (await Promise.all(dockers.map((docker) => docker.resume()))),
    },
  };
  return { dockers, registry, of, create, fixtures };
}

// Before any test is declared: what is to be done after all would be done after those that end meanwhile.
const parts = dockerMissing ? null : await setUp();
after(() => Promise.all([parts?.registry, ...(parts?.dockers ?? [])].map((part) => part?.stop())));

engineConformance('Docker on three hosts', parts?.fixtures ?? String(dockerMissing));

/** The containers of an installation on a host, by the id of their instance. */
async function containersOn({ client }: TestDocker, installation: string): Promise<string[]> {
  const filters = { label: [`sluice.installation=${installation}`] };
  const all = await client.listContainers({ all: true, filters });
  return all.map(({ Labels }) => Labels['sluice.instance']!).toSorted();
}

describe('several Docker hosts', { skip: dockerMissing, timeout: 300_000 }, () => {
  if (!parts) return;
  const { dockers, of } = parts;
  const create = async (graceMs?: number, hosts?: { socket: string }[]) => {
    const installation = ids('installation');
    const engine = await parts.create(installation, graceMs, hosts);
    after(async () => {
      await until('all hosts', () => engine.hosts!().every(({ available }) => available));
      await Promise.all((await engine.list()).map(({ id }) => engine.stop(id, 0)));
      await engine.close();
    });
    const counts = async () =>
      (await Promise.all(dockers.map((docker) => containersOn(docker, installation)))).map((all) => all.length);
    return { engine, installation, counts };
  };
  const many = <T>(count: number, of: (n: number) => T) => Array.from({ length: count }, (_, n) => of(n));

  test('instances that are started at once are spread evenly, by revision and then by number, with one digest', async () => {
    const { engine, installation, counts } = await create();
    const spec = await specOf(engine, of('web'));
    await Promise.all(many(3, () => engine.start({ ...spec, id: ids('instance') })));
    assert.deepEqual(await counts(), [1, 1, 1]);
    const afterCrash = await parts.create(installation);
    await Promise.all((await afterCrash.list()).map(({ id }) => afterCrash.start({ ...spec, id })));
    await afterCrash.close();
    assert.deepEqual(await counts(), [1, 1, 1], 'another process starts none of them again elsewhere');
    await engine.start({ ...spec, id: ids('instance'), revision: 2 });
    const other = { ...spec, project: ids('prj') };
    await Promise.all(many(2, () => engine.start({ ...other, id: ids('instance') })));
    assert.deepEqual(await counts(), [2, 2, 2], 'those of another project go where there are fewest');
    const digests = new Set<string>();
    for (const { client } of dockers) {
      const filters = { label: [`sluice.installation=${installation}`] };
      for (const { Image } of await client.listContainers({ filters })) digests.add(Image);
    }
    assert.equal(digests.size, 1);
  });

  test('hosts on one machine that choose a subnet at once get different ones', async () => {
    const installation = ids('networks');
    const filters = { label: [`sluice.installation=${installation}`] };
    const pool = parseSubnetPool(defaultSubnetPool);
    const clients = await Promise.all(dockers.map(({ socket }) => connectDocker(socket, defaultDockerTimeouts)));
    const networks = clients.map((client) => new ProjectNetworks({ client, installation, pool, sweepEveryMs: 0 }));
    const projects = many(4, () => ids('prj'));
    for (const project of projects) await Promise.all(networks.map((of) => of.ensure(project)));
    const own = (await Promise.all(dockers.map(({ client }) => client.listNetworks({ filters })))).flat();
    const subnets = own.map(({ IPAM }) => IPAM!.Config![0]!.Subnet);
    assert.equal(new Set(subnets).size, dockers.length * projects.length, subnets.join(' '));
    for (const of of networks) for (let sweeps = 0; sweeps < 2; sweeps++) await of.sweep(new Set(), 0);
    for (const client of clients) client.close();
  });

  test('a host that was killed is left out at once: what was to start there starts on another', async () => {
    const { engine, counts } = await create();
    const spec = await specOf(engine, of('web'));
    await dockers[0]!.kill();
    try {
      await Promise.all(many(2, () => engine.start({ ...spec, id: ids('instance') })));
      await engine.probe();
      await until('it to be told', () => engine.hosts!().map(({ available }) => available)[0] === false);
    } finally {
      await dockers[0]!.resume();
    }
    assert.deepEqual(await counts(), [0, 1, 1]);
  });

  test('within the grace, a host that hangs holds up nothing, and what it runs is as it was last seen', async () => {
    const { engine } = await create();
    const spec = await specOf(engine, of('web'));
    await Promise.all(many(3, () => engine.start({ ...spec, id: ids('instance') })));
    const before = (await engine.list()).map(({ id }) => id).toSorted();
    await dockers[1]!.freeze();
    try {
      const isFlagged = async () => (await engine.list()).filter(({ hostAway }) => hostAway).length === 1;
      await until('one of them to be flagged', isFlagged);
      const begun = performance.now();
      const late = ids('instance');
      await engine.start({ ...spec, id: late });
      assert.deepEqual((await engine.list()).map(({ id }) => id).toSorted(), [...before, late].toSorted());
      await engine.stop(late, 0);
      await engine.usage!(before);
      assert.ok(performance.now() - begun < timeouts.change / 2, 'no call waits for the host that hangs');
    } finally {
      dockers[1]!.thaw();
    }
    await until('it to be back', async () => (await engine.list()).every(({ hostAway }) => !hostAway));
    assert.deepEqual((await engine.list()).map(({ id }) => id).toSorted(), before);
  });

  test('a process that starts while a host is away says nothing of what runs until the grace is over', async () => {
    const { engine, installation } = await create();
    const spec = await specOf(engine, of('web'));
    await Promise.all(many(3, () => engine.start({ ...spec, id: ids('instance') })));
    const listWith = async (graceMs: number, list: (another: typeof engine) => Promise<void>) => {
      const another = await parts.create(installation, graceMs);
      try {
        await another.probe();
        await list(another);
      } finally {
        await another.close();
      }
    };
    await dockers[2]!.freeze();
    try {
      await listWith(hour, (another) => assert.rejects(another.list(), isFault('unavailable')));
      await listWith(500, async (another) => {
        const rest = await until('the grace to be over', () => another.list().catch(() => null));
        assert.equal(rest.length, 2);
      });
    } finally {
      dockers[2]!.thaw();
    }
  });

  test('a single host is never given up: what it runs is not known to be gone', async () => {
    const { engine } = await create(300, [dockers[0]!]);
    const spec = await specOf(engine, of('web'));
    await startReady(engine, spec);
    await dockers[0]!.kill();
    try {
      await until('it to be away', () => !engine.hosts!()[0]!.available);
      for (
        const begun = Date.now();
        Date.now() - begun < 1000;
        await new Promise((resolve) => setTimeout(resolve, 50))
      ) {
        await assert.rejects(engine.list(), isFault('unavailable'));
      }
    } finally {
      await dockers[0]!.resume();
    }
    await engine.probe();
    assert.deepEqual(
      (await engine.list()).map(({ id }) => id),
      [spec.id],
    );
  });

  test('of one instance on two hosts the newer one counts, and the other is removed', async () => {
    const { engine, installation, counts } = await create();
    const spec = await specOf(engine, of('web'));
    const single = await Promise.all(
      dockers.slice(0, 2).map(({ socket }) => createDockerEngine({ address: socket, installation })),
    );
    const [older, newer] = single as [(typeof single)[0], (typeof single)[0]];
    await older.start(spec);
    const created = (await older.listDated())[0]!.createdAt;
    // Docker says so in seconds.
    await until('another second', () => Math.floor(Date.now() / 1000) > created);
    await startReady(newer, spec);
    const [known] = await newer.list();
    assert.deepEqual(await engine.list(), [known]);
    await until('the other to be removed', async () => (await counts())[0] === 0);
    assert.deepEqual(await engine.list(), [known]);
    for (const each of single) await each.close();
  });

  test('a start without an answer is not tried elsewhere before its host is given up, and then no double is left', async () => {
    const proxy = await hangingDocker(dockers[0]!.socket);
    const installation = ids('installation');
    const counts = async () =>
      (await containersOn(dockers[0]!, installation)).length + (await containersOn(dockers[1]!, installation)).length;
    const addresses = [proxy.address, dockers[1]!.socket];
    const engine = await openDockerHosts(
      addresses.map((address) => ({ address, installation, timeouts: { probe: 3000, change: 3000 } })),
      1500,
    );
    try {
      const spec = await specOf(engine, of('web'));
      // The container is created and never told to start, as by a host that dies in between.
      proxy.hang(/^POST \/containers\/(create |[^/]+\/start)/);
      await assert.rejects(engine.start(spec), isFault('unavailable'));
      assert.equal(await counts(), 1, 'the first host has it');
      await assert.rejects(engine.start(spec), isFault('unavailable'));
      assert.equal(await counts(), 1, 'and no other before that one is given up');
      await until(
        'it to start elsewhere',
        () =>
          engine.start(spec).then(
            () => true,
            () => false,
          ),
        60_000,
      );
      proxy.release();
      await until('no double', async () => {
        const isBack = engine.hosts!().every(({ available }) => available);
        const [instance, ...others] = await engine.list();
        assert.deepEqual([instance?.id, others.length], [spec.id, 0]);
        return isBack && (await counts()) === 1;
      });
      assert.equal((await containersOn(dockers[1]!, installation)).length, 1);
      await engine.stop(spec.id, 0);
      assert.equal(await counts(), 0);
    } finally {
      proxy.release();
      await engine.close();
      proxy.stop();
    }
  });
});

describe('a region on three Docker hosts', { skip: dockerMissing, timeout: 400_000 }, () => {
  if (!parts) return;
  const { dockers, of } = parts;
  const graceS = 6;
  const replicas = 3;
  let t: TestApp;
  let shop: Shop;
  let installation: string;
  let firstStartMs: number;
  const warnings: string[] = [];
  const on = (docker: TestDocker) => containersOn(docker, installation);
  const rows = () => t.app.store.db.selectFrom('instance').select(['id', 'state']).execute();

  before(async () => {
    const regions = `local=${dockers.map(({ socket }) => `docker:${socket}`).join('+')}`;
    const env = { SLUICE_REGIONS: regions, SLUICE_DOCKER_HOST_GRACE_S: String(graceS) };
    const log = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(line) });
    t = await startApp({ tokenLimit: 1_000_000, env, log });
    installation = `${await findInstallation(t.app.store.db)}-local`;
    shop = await Shop.open(t.url, { replicas });
    const begun = performance.now();
    await shop.released(of('web').image, { strategy: 'blue_green' });
    firstStartMs = performance.now() - begun;
    assert.deepEqual(
      (await Promise.all(dockers.map(on))).map((all) => all.length),
      [1, 1, 1],
    );
  });
  after(async () => {
    await shop?.api('DELETE', '');
    if (t)
      await until('nothing to be left', async () => (await Promise.all(dockers.map(on))).flat().length === 0, 30_000);
    await t?.stop();
  });

  const ways: [how: string, stop: (docker: TestDocker) => unknown, resume: (docker: TestDocker) => unknown][] = [
    ['hangs (SIGSTOP)', (docker) => docker.freeze(), (docker) => docker.thaw()],
    ['is killed (SIGKILL)', (docker) => docker.kill(), (docker) => docker.resume()],
  ];
  for (const [how, stop, resume] of ways) {
    test(`one that ${how} is replaced on the others, without a failed request, and comes back without doubles`, async (context) => {
      const { stopped, stayed, lost } = await busiest();
      const load = shop.load(4, 25);
      await stop(stopped);
      const begun = performance.now();
      const isReplaced = async () => {
        const all = await rows();
        return all.length === replicas && all.every(({ id, state }) => state === 'healthy' && !lost.includes(id));
      };
      await until('all replicas to be healthy elsewhere', isReplaced, 120_000).catch(async (error) => {
        await resume(stopped);
        throw error;
      });
      const tookMs = performance.now() - begun;
      const { body } = await t.call('GET', '/v1/regions');
      const told = await cli(['regions'], { SLUICE_API_URL: t.url, SLUICE_TOKEN: adminToken });
      await resume(stopped);
      await until('what was replaced to be removed', async () => (await on(stopped)).length === 0, 60_000);
      const { visits, failed } = await load.stop();
      context.diagnostic(
        `healthy elsewhere after ${Math.round(tookMs)} ms, with a grace of ${graceS} s and a first start of ${Math.round(firstStartMs)} ms; ${visits} requests, ${failed.length} failed`,
      );
      assert.deepEqual(failed, [], warnings.join(''));
      // Ten seconds to notice it and to start what is missing; longer on a machine that was slow with the first start, too.
      const startMs = Math.max(10_000, 4 * firstStartMs);
      assert.ok(visits > 0 && tookMs > graceS * 1000 && tookMs < graceS * 1000 + startMs, `${tookMs} ms, ${startMs}`);
      const [region] = body.data;
      assert.equal(region.available, true);
      assert.match(told.stdout, new RegExp(`local +docker +answers +2 of 3, away: ${stopped.socket}`));
      const available = dockers.map((docker) => docker !== stopped);
      assert.deepEqual(
        region.hosts.map((host: { available: boolean }) => host.available),
        available,
      );
      const running = (await Promise.all(stayed.map(on))).flat().toSorted();
      assert.deepEqual(running, (await rows()).map(({ id }) => id).toSorted(), 'each once, and nothing else');
    });
  }

  /** The host that runs most: what is lost with it. */
  async function busiest() {
    const all = await Promise.all(dockers.map(async (docker) => ({ docker, lost: await on(docker) })));
    const { docker: stopped, lost } = all.toSorted((a, b) => b.lost.length - a.lost.length)[0]!;
    assert.ok(lost.length > 0);
    return { stopped, lost, stayed: dockers.filter((docker) => docker !== stopped) };
  }
});
