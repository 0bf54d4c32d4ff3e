// What `npm pack` makes: run by npx in an empty folder, and as a container image, built and run with a real Docker engine the
// way the manifests of deploy/kubernetes run it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  globSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { makeDeb } from '../../scripts/deb.ts';
import { onPath } from '../../scripts/packages.ts';
import { adminToken, call } from '../helpers/app.ts';
import { dockerMissing, startDocker, type TestDocker } from '../helpers/docker.ts';
import type { InspectedImage, TestContainer } from '../helpers/docker-client.ts';
import { freePort } from '../helpers/free-port.ts';
import { Wire } from '../helpers/raw-http.ts';
import { ask } from '../helpers/router.ts';
import { buildServiceImage } from '../helpers/service-image.ts';
import { until } from '../helpers/wait.ts';

const user = '10001:10001';
const stopWithinS = 60;
const settings = ['SLUICE_DATA_DIR=/data/sluice', 'SLUICE_REGIONS=local=standin:', 'SLUICE_SAMPLE=off'];

const folder = mkdtempSync(join(tmpdir(), 'sluice-package-'));
let packed: string;

const seconds = (sinceMs: number): string => `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

before(() => {
  // npm would build everything first: the tests run from a build already, which is packed.
  execFileSync(process.execPath, ['scripts/build.ts', 'package'], { stdio: 'inherit' });
  const name = execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], {
    encoding: 'utf8',
  }).trim();
  packed = join(folder, name);
});
after(() => rmSync(folder, { recursive: true, force: true }));

describe('the package', () => {
  const mostBytes = 60e6;
  const cache = join(folder, 'cache');
  // Nothing is downloaded. The packages left out are Node.js, for machines whose own is too old.
  const environment = {
    ...{ HOME: folder, PATH: [join(process.execPath, '..'), process.env.PATH].join(':') },
    ...{ npm_config_cache: cache, npm_config_offline: 'true', npm_config_omit: 'optional' },
  };
  const ports = { SLUICE_PORT: '0', SLUICE_ROUTER_PORT: '0', SLUICE_ROUTER_TLS_PORT: '0' };
  const sluice = (...words: string[]) =>
    execFileSync(process.execPath, [join(installed(), 'bin/sluice.js'), ...words], {
      cwd: folder,
      env: environment,
      encoding: 'utf8',
    });
  const installed = () => globSync(join(cache, '_npx/*/node_modules/sluice'))[0]!;

  test('npx runs it in an empty folder, without the network: it serves, deploys, and says how to call it', async (c) => {
    const begunAt = performance.now();
    const service = spawn('npx', ['--yes', `./${basename(packed)}`, 'serve'], {
      cwd: folder,
      env: { ...environment, ...ports, SLUICE_REGIONS: 'local=standin:', SLUICE_SAMPLE: 'off' },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    try {
      let hint = '';
      for await (const line of createInterface({ input: service.stdout })) {
        hint = /in this folder: (.+) projects create/.exec(line)?.[1] ?? '';
        if (hint !== '') break;
      }
      c.diagnostic(`from npx to serving: ${seconds(begunAt)}`);
      // `npx sluice` here would be some other package, from the registry.
      assert.equal(hint, `node ${join(installed(), 'bin/sluice.js')}`);
      const url = readFileSync(join(folder, 'data/address'), 'utf8').split('\n')[0]!;
      for (const path of ['/readyz', '/console', '/docs']) assert.equal((await fetch(url + path)).status, 200, path);
      sluice('projects', 'create', 'Shop');
      assert.match(sluice('deploy', 'registry.example/shop:1', '--project', 'shop'), /r1/);
      const rendition = '{ label: 270p, width: 480, height: 270, video_kbps: 500, audio_kbps: 96 }';
      writeFileSync(join(folder, 'catalogue.yaml'), `renditions: [${rendition}]\nstreams: []\n`);
      sluice('catalogue', 'build');
      assert.match(await (await fetch(`${url}/gallery/hls.min.js`)).text(), /MANIFEST_PARSED/);
    } finally {
      process.kill(-service.pid!, 'SIGTERM');
    }
    await once(service, 'exit');
  });

  test('it brings no other package, no link and no source, and takes less than 60 MB', (c) => {
    assert.deepEqual(globSync('*', { cwd: join(installed(), '..') }), ['sluice']);
    // The service, which may still be ending, has added its cache of compiled code.
    const files = globSync('**/*', { cwd: installed(), exclude: (path) => path.endsWith('/compiled') });
    const facts = files.map((file) => lstatSync(join(installed(), file)));
    assert.ok(facts.every((fact) => !fact.isSymbolicLink()));
    const bytes = facts.reduce((sum, { size }) => sum + size, 0);
    c.diagnostic(`packed ${megabytes(statSync(packed).size)}, installed ${megabytes(bytes)}`);
    assert.ok(bytes < mostBytes);
    assert.deepEqual(
      files.filter((file) => /\.tsx?$/.test(file) && !file.endsWith('.d.ts')),
      [],
    );
    for (const name of ['hls.js', 'fastify', 'react'])
      assert.match(
        readFileSync(join(installed(), 'dist/package/LICENCES.txt'), 'utf8'),
        new RegExp(`^${name} \\d`, 'm'),
      );
  });

  test('npm has no script of it to warn of', () => {
    const { scripts } = JSON.parse(readFileSync(join(installed(), 'package.json'), 'utf8'));
    for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) assert.ok(!(name in scripts), name);
  });

  test('the files that it names for service managers are in it', () => {
    for (const unit of ['sluice.service', 'sluice.socket']) {
      const text = readFileSync(join(installed(), 'deploy', unit), 'utf8');
      const named = [...text.matchAll(/\/opt\/sluice\/lib\/node_modules\/sluice\/(\S+)/g)].map(([, path]) => path!);
      assert.ok(named.length > 0);
      for (const path of named) assert.ok(existsSync(join(installed(), path)), path);
      writeFileSync(join(folder, unit), text.replaceAll('/opt/sluice/lib/node_modules/sluice', installed()));
    }
    if (onPath('systemd-analyze'))
      execFileSync('systemd-analyze', ['verify', join(folder, 'sluice.service'), join(folder, 'sluice.socket')]);
    const launcher = join(installed(), 'bin/with-node.sh');
    const asked = ['sluice.js', '--version'];
    assert.match(execFileSync('sh', [launcher, ...asked], { env: environment, encoding: 'utf8' }), /^sluice \d/);
    // The Node.js that npm has put beside it goes first.
    assert.match(
      execFileSync('sh', [resolve('bin/with-node.sh'), ...asked], { env: { PATH: '/usr/bin:/bin' }, encoding: 'utf8' }),
      /^sluice \d/,
    );
  });
});

test('the package for Debian has the command, its Node.js and the units, and makes a user', {
  skip: onPath('dpkg-deb') ? false : 'dpkg-deb is not installed',
}, () => {
  const path = makeDeb(packed, folder, 'none');
  const field = (name: string) => execFileSync('dpkg-deb', ['--field', path, name], { encoding: 'utf8' }).trim();
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  assert.deepEqual([field('Package'), field('Version')], ['sluice', version]);
  const root = join(folder, 'debian');
  execFileSync('dpkg-deb', ['--raw-extract', path, root]);
  for (const unit of ['sluice.service', 'sluice.socket']) {
    const named = readFileSync(join(root, 'lib/systemd/system', unit), 'utf8').matchAll(
      /\/opt\/sluice\/\S+\.(?:sh|js)/g,
    );
    for (const [file] of named) assert.ok(existsSync(join(root, file)), file);
  }
  // In its own root: what it runs is named by where dpkg puts it.
  const launcher = /(\/opt\S+) (\S+) "\$@"/.exec(readFileSync(join(root, 'usr/bin/sluice'), 'utf8'))!;
  assert.equal(
    execFileSync('sh', [join(root, launcher[1]!), launcher[2]!, '--version'], {
      env: { PATH: '/usr/bin:/bin' },
      encoding: 'utf8',
    }),
    `sluice ${version}\n`,
  );
  for (const script of ['postinst', 'prerm', 'postrm']) execFileSync('sh', ['-n', join(root, 'DEBIAN', script)]);
  assert.match(readFileSync(join(root, 'DEBIAN/postinst'), 'utf8'), /useradd --system .* sluice\n/);
});

describe('the image', { skip: dockerMissing }, () => {
  /** As a kubelet makes an emptyDir: of root, and open to all. */
  const emptyDir = mkdtempSync(join(tmpdir(), 'sluice-empty-dir-'));
  chmodSync(emptyDir, 0o2777);
  let docker: TestDocker;
  let built: InspectedImage;
  let container: TestContainer;
  let url: string;
  let routerPort: number;
  let took: string;

  before(async () => {
    docker = await startDocker();
    const image = await buildServiceImage(docker, packed);
    built = await docker.client.getImage(image).inspect();
    const port = await freePort();
    routerPort = await freePort();
    url = `http://127.0.0.1:${port}`;
    container = await docker.client.createContainer({
      Image: image,
      Env: [...settings, `SLUICE_ADMIN_TOKEN=${adminToken}`],
      HostConfig: {
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        Tmpfs: { '/tmp': '' },
        Binds: [`${emptyDir}:/data`],
        PortBindings: {
          '8080/tcp': [{ HostIp: '127.0.0.1', HostPort: String(port) }],
          '8000/tcp': [{ HostIp: '127.0.0.1', HostPort: String(routerPort) }],
        },
      },
    });
    const begunAt = performance.now();
    await container.start();
    const answers = () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until('an answer', answers, 60_000).catch(async (error) => {
      throw new Error(String(await container.logs()), { cause: error });
    });
    took = seconds(begunAt);
  });
  after(async () => {
    await docker?.stop();
    rmSync(emptyDir, { recursive: true, force: true });
  });

  test('runs as a user without rights, and says which ports and which folder it needs', async (c) => {
    c.diagnostic(`${megabytes(built.Size)} with its base; from start to ready: ${took}`);
    const { User, Volumes, ExposedPorts } = built.Config;
    assert.equal(User, user);
    assert.deepEqual(Object.keys(Volumes), ['/data']);
    assert.deepEqual(Object.keys(ExposedPorts).sort(), ['8000/tcp', '8080/tcp', '8443/tcp']);
    const { Processes, Titles } = await container.top({ ps_args: '-eo uid,pid,args' });
    assert.equal(Titles[0], 'UID');
    assert.ok(Processes.length >= 3, 'a supervisor, a control process, a router worker');
    for (const [uid] of Processes) assert.equal(uid, '10001');
  });

  test('with a read-only file system it is live, ready and healthy, takes an API call and carries a request', async () => {
    for (const path of ['/livez', '/readyz']) assert.equal(await (await fetch(url + path)).text(), 'ok\n');
    assert.equal((await container.run(built.Config.Healthcheck!.Test.slice(1))).exitCode, 0);
    assert.equal((await fetch(`${url}/console`)).status, 200);
    const project = await call(url, 'POST', '/v1/projects', { body: { name: 'Shop' } });
    assert.equal(project.status, 201);
    const body = { environment: 'production', image: 'registry.example/shop:1' };
    assert.equal((await call(url, 'POST', `/v1/projects/${project.body.id}/deployments`, { body })).status, 201);
    const serves = async () => {
      const answer = await ask(routerPort, { host: 'shop-production.localhost' });
      return answer.status === 200 && answer.body;
    };
    const page = await until('the revision to serve', serves, 60_000).catch(async (error) => {
      throw new Error(String(await container.logs()), { cause: error });
    });
    assert.equal(JSON.parse(page).revision, 'r1');
  });

  test('on SIGTERM an upload under way is answered, and it ends in time and in order', async () => {
    const { NetworkSettings } = await container.inspect();
    const { IPAddress } = Object.values(NetworkSettings.Networks)[0]!; // where a closed port refuses at once
    const upload = new Wire(8000, IPAddress);
    upload.write(
      'POST / HTTP/1.1\r\nHost: shop-production.localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n',
    );
    await upload.until('the request to be under way', () => upload.text.includes('100 Continue'));
    const stopped = container.stop({ t: stopWithinS });
    const isRefused = () =>
      fetch(`http://${IPAddress}:8000/livez`).then(
        () => false,
        () => true,
      );
    await until('others to be refused', isRefused, 60_000);
    upload.write('hello');
    await upload.until('its answer', () => upload.text.includes('HTTP/1.1 200'));
    await stopped;
    const { State } = await container.inspect();
    assert.equal(State.ExitCode, 0, 'not 137: nobody had to kill it');
  });
});
