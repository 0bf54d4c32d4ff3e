// Every engine against the one suite, and what is Docker's alone: a real dockerd and a real registry.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { containerName } from '../../src/engines/docker/container.ts';
import { createDockerEngine } from '../../src/engines/docker/docker.ts';
import { connectDocker, defaultDockerTimeouts } from '../../src/engines/docker/docker-client.ts';
import { ProjectNetworks } from '../../src/engines/docker/project-networks.ts';
import { parseSubnetPool } from '../../src/engines/docker/subnets.ts';
import { runSets } from '../../src/engines/engine.ts';
import { createStandinEngine } from '../../src/engines/standin/standin.ts';
import { standinInOwnProcess } from '../../src/engines/standin/standin-process.ts';
import { readRegistryAuths } from '../../src/registries/registry-logins.ts';
import { isAlive, parentOf, suspend } from '../helpers/children.ts';
import { dockerMissing, startDocker, startRegistry } from '../helpers/docker.ts';
import { type ImageKind, pushImage } from '../helpers/images.ts';
import { type InstanceAddress, ids, specOf, startReady } from '../helpers/instances.ts';
import { ca, issue, selfSigned } from '../helpers/router-certificates.ts';
import { until } from '../helpers/wait.ts';
import { type EngineFixtures, engineConformance } from './conformance.ts';
import { assertAway, isFault } from './faults.ts';

const get = ({ host, port }: InstanceAddress) => fetch(`http://${host}:${port}/`).then((response) => response.text());

const standin: EngineFixtures = {
  create: async () => runSets(createStandinEngine()),
  outlivesProcess: false,
  web: { image: 'shop:v1', variables: {} },
  missing: { image: 'missing:v1', variables: { STANDIN_IMAGE_MISSING: '1' } },
  exits: { image: 'shop:v1', variables: { STANDIN_EXIT_AFTER_S: '0.05' }, exitCode: 1 },
  stubborn: {
    image: 'shop:v1',
    variables: {},
    async occupy({ host, port }) {
      // A request that never comes to its end, and one behind it by whose answer the first one has arrived.
      const socket = connect(port, host).on('error', () => {});
      socket.write('GET / HTTP/1.1\r\n');
      await get({ host, port });
    },
  },
  chatty: {
    image: 'shop:v1',
    variables: { STANDIN_ERROR_RATE: '1' },
    lines: 6,
    async provoke(address) {
      for (let n = 0; n < 5; n++) await get(address);
    },
  },
};

async function setUpDocker() {
  const [docker, registry, closed] = await Promise.all([
    startDocker(),
    startRegistry(),
    startRegistry({ closed: true }),
  ]);
  const image: Partial<Record<ImageKind, string>> = {};
  for (const kind of ['web', 'exits', 'stubborn', 'chatty', 'broken', 'empty'] as const) {
    image[kind] = await pushImage(docker, registry, kind);
  }
  const of = (kind: ImageKind) => ({ image: image[kind]!, variables: {} });
  const fixtures: EngineFixtures = {
    create: async (installation) => runSets(await createDockerEngine({ address: docker.socket, installation })),
    outlivesProcess: true,
    web: of('web'),
    missing: { image: `${registry.host}/missing:v1`, variables: {} },
    exits: { ...of('exits'), exitCode: 3 },
    stubborn: of('stubborn'),
    chatty: { ...of('chatty'), lines: 23 },
    outage: { begin: () => docker.pause(), end: () => docker.resume() },
  };
  return { docker, registry, closed, of, fixtures };
}

// Before any test is declared: what is to be done after all would be done after those that end meanwhile.
const parts = dockerMissing ? null : await setUpDocker();
after(() => Promise.all([parts?.docker, parts?.registry, parts?.closed].map((part) => part?.stop())));
const standinDir = mkdtempSync(join(tmpdir(), 'sluice-standin-'));
after(() => rmSync(standinDir, { recursive: true })); // the process it belongs to ends with it
engineConformance('stand-in in this process', standin);
engineConformance('stand-in', {
  ...standin,
  create: async (installation) => runSets(standinInOwnProcess(standinDir, installation)),
  outlivesProcess: true,
});
engineConformance('Docker', parts?.fixtures ?? String(dockerMissing));

describe('Docker', { skip: dockerMissing, timeout: 120_000 }, () => {
  if (!parts) return;
  const { docker, registry, closed, of } = parts;
  const address = docker.socket;
  const create = async (more: Partial<Parameters<typeof createDockerEngine>[0]> = {}) => {
    const installation = ids('installation');
    const engine = await createDockerEngine({ address, installation, ...more });
    after(async () => {
      for (const { id } of await engine.list()) await engine.stop(id, 0);
      await engine.close();
    });
    return {
      engine,
      installation,
      inspect: (id: string) => docker.client.getContainer(containerName(installation, id)).inspect(),
    };
  };

  test('runs what is asked for, pinned to the digest, limited and without needless rights', async () => {
    const { engine, inspect } = await create();
    const spec = await specOf(engine, of('web'), {
      port: 9000,
      variables: { NAME: 'a=b c', PORT: '1' },
      resources: { memory_mb: 48, cpus: 0.25 },
    });
    await startReady(engine, spec);
    const { Config, HostConfig, RestartCount } = await inspect(spec.id);
    assert.equal(Config.Image, `${registry.host}/web@${spec.digest}`);
    assert.ok(Config.Env.includes('NAME=a=b c') && Config.Env.includes('PORT=9000'));
    assert.equal(Config.Env.filter((line) => line.startsWith('PORT=')).length, 1);
    assert.equal(HostConfig.Memory, 48 * 1024 * 1024);
    assert.equal(HostConfig.MemorySwap, HostConfig.Memory);
    assert.deepEqual([HostConfig.NanoCpus, HostConfig.PidsLimit], [25e7, 512]);
    assert.deepEqual([HostConfig.Init, HostConfig.Privileged, HostConfig.CapAdd], [true, false, null]);
    assert.deepEqual(HostConfig.SecurityOpt, ['no-new-privileges']);
    assert.deepEqual([HostConfig.RestartPolicy?.Name, RestartCount], ['no', 0]);
    assert.deepEqual(HostConfig.PortBindings, { '9000/tcp': [{ HostIp: '127.0.0.1', HostPort: '' }] });
    assert.deepEqual(HostConfig.LogConfig, { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '2' } });
  });

  test('starts a container that a crash left created, and reports it as exited if it is not started again', async () => {
    const clock = { now: () => Date.now() };
    const { engine, installation, inspect } = await create({ clock });
    const spec = await specOf(engine, of('web'));
    await startReady(engine, spec);
    const { Config, HostConfig } = await inspect(spec.id);
    await engine.stop(spec.id, 0);
    await docker.client.createContainer({ ...Config, HostConfig, name: containerName(installation, spec.id) });
    const [waiting] = await engine.list();
    assert.deepEqual([waiting?.state, waiting?.address], ['created', null], 'it may be about to start');
    clock.now = () => Date.now() + 3 * 60_000;
    const [forgotten] = await engine.list();
    assert.deepEqual([forgotten?.state, forgotten?.exitCode], ['exited', null]);
    await startReady(engine, spec);
    assert.equal((await engine.list()).length, 1);
  });

  test('reaches others of its project and none of another project; routers reach all of them', async () => {
    const { engine, installation } = await create();
    const mine = await specOf(engine, of('web'));
    const sibling = { ...mine, id: ids('instance') };
    const theirs = { ...mine, id: ids('instance'), project: ids('prj') };
    for (const spec of [mine, sibling, theirs]) await startReady(engine, spec);
    const container = ({ id }: { id: string }) => docker.client.getContainer(containerName(installation, id));
    const addressOf = async (spec: { id: string }) =>
      Object.values((await container(spec).inspect()).NetworkSettings.Networks)[0]!.IPAddress;
    const fetches = async (address: string) => {
      const ask = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | /bin/busybox timeout 4 /bin/busybox nc ${address} 8080`;
      return (await container(mine).run(['/bin/busybox', 'sh', '-c', ask])).output.includes('200 OK');
    };
    assert.equal(await fetches(await addressOf(sibling)), true, 'of its own project');
    assert.equal(await fetches(await addressOf(theirs)), false, 'of another project');
  });

  test('has room for more projects than Docker has networks by itself, and removes those that nothing uses', async () => {
    const installation = ids('networks');
    const client = await connectDocker(docker.socket, defaultDockerTimeouts);
    const pool = parseSubnetPool('base=10.99.0.0/20,size=28');
    const networks = new ProjectNetworks({ client, installation, pool, sweepEveryMs: 0 });
    const own = () => docker.client.listNetworks({ filters: { label: [`sluice.installation=${installation}`] } });
    const projects = Array.from({ length: 40 }, (_, n) => `prj_${n}`);
    for (const project of projects) await networks.ensure(project);
    await Promise.all([networks.ensure('prj_1'), networks.ensure('prj_1')]);
    assert.equal((await own()).length, 40);
    const kept = new Set(['prj_7']);
    await networks.sweep(kept, 0);
    assert.equal((await own()).length, 40, 'one that is about to be used is left alone');
    await networks.ensure('prj_8');
    await networks.sweep(kept, 0);
    assert.deepEqual((await own()).map(({ Labels }) => Labels!['sluice.project']).toSorted(), ['prj_7', 'prj_8']);
    await networks.sweep(new Set(), 0);
    await networks.sweep(new Set(), 0);
    assert.deepEqual(await own(), []);
    // A range that no other test uses: that of its bridge, 10.2…, moved to 10.1…
    const bridge = (await docker.client.getNetwork('bridge').inspect()).IPAM!.Config![0]!.Subnet!;
    const full = parseSubnetPool(`base=${bridge.replace(/^10\.2(.*)\/24$/, '10.1$1/28')},size=28`);
    const small = new ProjectNetworks({ client, installation, pool: full, sweepEveryMs: 0 });
    await small.ensure('prj_1');
    await assert.rejects(small.ensure('prj_2'), /no subnet is left/);
    for (const { Id } of await own()) await docker.client.getNetwork(Id).remove();
    client.close();
  });

  test('leaves nothing of what cannot start', async () => {
    const { engine } = await create();
    const spec = await specOf(engine, of('broken'));
    await assert.rejects(engine.start(spec), isFault('start_failed'));
    assert.deepEqual(await engine.list(), []);
  });

  test('a program that is not there ends with 127 and the reason in its log', async () => {
    const { engine } = await create();
    const spec = await specOf(engine, of('empty'));
    await engine.start(spec);
    await until('its end', async () => (await engine.list())[0]?.exitCode === 127, 30_000);
    assert.match((await engine.logs(spec.id, { tail: 1 }))[0]!.text, /No such file/);
  });

  test('knows that a program listens nowhere once it has ended, though Docker still says that it runs', async () => {
    const { engine, inspect } = await create();
    const spec = await specOf(engine, of('web'));
    await startReady(engine, spec);
    const { Pid: program } = (await inspect(spec.id)).State;
    // It would tell Docker of the end.
    const shim = parentOf(program);
    await suspend(shim);
    try {
      process.kill(program, 'SIGKILL');
      await until('the end of the program', () => !isAlive(program));
      assert.equal((await inspect(spec.id)).State.Running, true);
      assert.deepEqual(await engine.listening!(spec.id), { open: [], loopback: [], exposed: [] });
    } finally {
      process.kill(shim, 'SIGCONT');
    }
    await until('Docker to notice', async () => !(await inspect(spec.id)).State.Running);
    assert.equal(await engine.listening!(spec.id), null);
  });

  test('does not take a container of someone else for its own', async () => {
    const { engine, installation } = await create();
    const spec = await specOf(engine, of('web'));
    const name = containerName(installation, spec.id);
    const foreign = await docker.client.createContainer({ name, Image: `${registry.host}/web@${spec.digest}` });
    await assert.rejects(engine.start(spec), isFault('start_failed'));
    assert.deepEqual(await engine.list(), []);
    await foreign.remove();
  });

  test('pulls an image again that was removed since', async () => {
    const { engine } = await create();
    const image = await pushImage(docker, registry, 'web', { image: 'removed' });
    const spec = await specOf(engine, { image, variables: {} });
    await docker.client.getImage(`${registry.host}/removed@${spec.digest}`).remove({ force: true });
    await startReady(engine, spec);
  });

  test('a tag that moved is another digest, and what runs stays what it was', async () => {
    const { engine } = await create();
    const image = await pushImage(docker, registry, 'web', { image: 'moving' });
    const first = await specOf(engine, { image, variables: {} });
    await pushImage(docker, registry, 'stubborn', { image: 'moving' });
    const second = await engine.prepare(image, {});
    assert.notEqual(second.digest, first.digest);
    await startReady(engine, first);
  });

  test('shows the login it is given to the registry that asks for one, and uses no image of others without it', async () => {
    const image = await pushImage(docker, closed, 'web', { image: 'private' });
    const { engine } = await create();
    const anyone = { login: null, isKnown: false };
    await assert.rejects(engine.prepare(image, {}, anyone), isFault('image_denied'));
    const wrong = { username: 'sluice', password: 'wrong', server: closed.host };
    await assert.rejects(engine.prepare(image, {}, { ...anyone, login: wrong }), isFault('image_denied'));
    const login = readRegistryAuths(closed.configPath!).get(closed.host)!;
    const { digest } = await engine.prepare(image, {}, { ...anyone, login });
    await startReady(engine, { ...(await specOf(engine, of('web'))), image, digest });
    await assert.rejects(
      engine.prepare(`${closed.host}/none:v1`, {}, { ...anyone, login }),
      isFault('image_not_found'),
    );
    const exact = `${closed.host}/private@${digest}`;
    await assert.rejects(engine.prepare(exact, {}, anyone), isFault('image_denied'), 'though the engine has it');
    assert.equal((await engine.prepare(exact, {}, { ...anyone, isKnown: true })).digest, digest);
  });

  test('a registry that is away may come back; an exact image that is known and here needs none', async () => {
    const { engine } = await create();
    const image = await pushImage(docker, registry, 'web', { image: 'here' });
    const { digest } = await engine.prepare(image, {});
    await registry.pause();
    try {
      await assert.rejects(engine.prepare(image, {}), isFault('registry_unreachable'));
      const exact = `${registry.host}/here:v1@${digest}`;
      assert.equal((await engine.prepare(exact, {}, { login: null, isKnown: true })).digest, digest);
    } finally {
      await registry.resume();
    }
    assert.equal((await engine.prepare(image, {})).digest, digest);
  });

  test('a registry that hangs is not waited for long', async () => {
    const hanging = createServer(() => {}).listen(0, '127.0.0.1');
    await once(hanging, 'listening');
    const { port } = hanging.address() as { port: number };
    const { engine } = await create({ timeouts: { pullSilence: 300 } });
    await assert.rejects(engine.prepare(`127.0.0.1:${port}/shop:v1`, {}), isFault('registry_failing'));
    hanging.close();
  });

  test('what is no reference to an image is not found', async () => {
    const { engine } = await create();
    await assert.rejects(engine.prepare('Not An Image', {}), isFault('image_not_found'));
  });

  test('takes another port where the first ones are taken', async () => {
    const { engine } = await create();
    const spec = await specOf(engine, of('web'));
    const { address } = await startReady(engine, spec);
    const servers: Server[] = [];
    for (let port = address.port + 1; port <= address.port + 25; port++) {
      const server = createServer();
      servers.push(server);
      await new Promise((resolve) => server.once('error', resolve).listen(port, '127.0.0.1', () => resolve(null)));
    }
    try {
      await startReady(engine, { ...spec, id: ids('instance') });
    } finally {
      for (const server of servers) server.close();
    }
  });

  test('a long line is one line', async () => {
    const { engine } = await create();
    const spec = await specOf(engine, { ...of('chatty'), variables: { LONG: '40000' } });
    await engine.start(spec);
    const long = await until(
      'the long line',
      async () => (await engine.logs(spec.id, { tail: 1000 })).find(({ text }) => text.length >= 40_000),
      30_000,
    );
    assert.equal(long.text, 'x'.padStart(40_000));
  });

  test('an engine that hangs is away, and calls on it end in time', async () => {
    const timeouts = { probe: 200, read: 300, change: 300, pullSilence: 400, stopMargin: 500 };
    const { engine } = await create({ timeouts });
    const patient = await create();
    const spec = await specOf(patient.engine, of('web'));
    await docker.freeze();
    try {
      await assertAway(engine, of('web'), spec);
    } finally {
      docker.thaw();
    }
    await patient.engine.probe();
  });

  test('ending dockerd at once loses no instance', async () => {
    const { engine } = await create();
    const spec = await specOf(engine, of('web'));
    await startReady(engine, spec);
    await docker.kill();
    await assert.rejects(engine.list(), isFault('unavailable'));
    await docker.resume();
    const [instance] = await engine.list();
    assert.equal(instance?.id, spec.id);
    await engine.stop(spec.id, 1);
    assert.deepEqual(await engine.list(), []);
  });

  test('is reached over TCP too, and its instances at the same host', async () => {
    const { engine } = await create({ address: await docker.tcp() });
    const { address } = await startReady(engine, await specOf(engine, of('web')));
    assert.equal(address.host, '127.0.0.1');
  });

  test('over TLS, a host and its client know each other by their certificates', async () => {
    const [server, client, foreign] = await Promise.all([issue('localhost'), issue('client'), issue('localhost')]);
    const { port } = new URL(
      await docker.tcp({ ca, cert: server.certificate, key: server.key, requestCert: true, rejectUnauthorized: true }),
    );
    const folder = mkdtempSync(join(tmpdir(), 'sluice-certs-'));
    after(() => rmSync(folder, { recursive: true }));
    const address = `tcp://localhost:${port}?certs=${folder}`;
    await assert.rejects(create({ address }), /SLUICE_REGIONS: .*ca\.pem/);
    const write = (files: Record<string, string>) => {
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    };
    write({ 'ca.pem': ca, 'cert.pem': client.certificate, 'key.pem': client.key });
    const { engine } = await create({ address });
    const { address: found } = await startReady(engine, await specOf(engine, of('web')));
    assert.equal(found.host, '127.0.0.1');
    const { certificate: unknown, key } = await selfSigned();
    write({ 'cert.pem': unknown, 'key.pem': key });
    const stranger = await createDockerEngine({ address, installation: ids('installation') });
    await assert.rejects(stranger.probe(), isFault('unavailable'), 'it does not know this client');
    await stranger.close();
    write({ 'ca.pem': unknown, 'cert.pem': foreign.certificate, 'key.pem': foreign.key });
    const careful = await createDockerEngine({ address, installation: ids('installation') });
    await assert.rejects(careful.probe(), isFault('unavailable'), 'we do not know this host');
    await careful.close();
  });

  test('leaves no connection behind', async () => {
    const pipes = () => process.getActiveResourcesInfo().filter((name) => name === 'PipeWrap').length;
    const before = pipes();
    const engine = await createDockerEngine({ address, installation: ids('installation') });
    const spec = await specOf(engine, of('web'));
    await startReady(engine, spec);
    await engine.logs(spec.id, { tail: 1 });
    const listing = Promise.all([engine.list(), engine.list()]);
    await engine.stop(spec.id, 0);
    await listing;
    await until('the pipes to close', async () => pipes() <= before);
    await engine.close();
    await assert.rejects(engine.list(), isFault('unavailable'));
  });
});
