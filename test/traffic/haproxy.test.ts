// HAProxy as the data plane: what it does beyond the conformance suite, with a real HAProxy.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { pino } from 'pino';
import type {
  CertificateSource,
  EnvironmentRoutes,
  RouterState,
  Share,
  StoredCertificate,
} from '../../src/traffic/data-plane.ts';
import { reload } from '../../src/traffic/haproxy/haproxy-process.ts';
import { ask as command, follow } from '../../src/traffic/haproxy/haproxy-socket.ts';
import { suspend } from '../helpers/children.ts';
import { serialAt, startHaproxy, type TestHaproxy } from '../helpers/haproxy.ts';
import { Wire } from '../helpers/raw-http.ts';
import { ask, deadTarget, getRequest, host, named, route, share } from '../helpers/router.ts';
import { issue } from '../helpers/router-certificates.ts';
import { askTls } from '../helpers/router-tls.ts';
import { canaryShareOf } from '../helpers/visitors.ts';
import { until } from '../helpers/wait.ts';

describe('HAProxy', () => {
  test('routes by host; an unknown host is 404', async () => {
    const router = await startHaproxy();
    const one = await named('one');
    await serve(router, share(1, 100, one));
    assert.equal((await ask(router.port)).body, 'one');
    const unknown = await ask(router.port, { host: 'unknown.localhost' });
    assert.equal(unknown.status, 404);
    assert.match(unknown.body, /^nothing is deployed under this host name \(req_/);
  });

  test('shares change at run time, without a reload; raising one only moves visitors forward', async () => {
    const router = await startHaproxy();
    const [stable, canary] = [await named('stable'), await named('canary')];
    await serve(router, share(1, 70, stable), share(2, 30, canary));
    const worker = router.plane.routers()[0]!.id;
    assert.ok(Math.abs((await canaryShareOf(router.port, 1000)) - 0.3) < 0.01);
    const visitor = await until('a visitor who sees the canary', async () => {
      const { body, headers } = await ask(router.port);
      return body === 'canary' ? headers['set-cookie']![0]!.split(';')[0]! : null;
    });
    for (const percent of [30, 55, 90]) {
      await serve(router, share(1, 100 - percent, stable), share(2, percent, canary));
      const { body } = await ask(router.port, { headers: { cookie: visitor } });
      assert.equal(body, 'canary');
      assert.ok(Math.abs((await canaryShareOf(router.port, 1000)) - percent / 100) < 0.01);
    }
    assert.equal(router.plane.routers()[0]!.id, worker);
  });

  test('thousands of visitors, many at once: no two get the same bucket, so the share is exact', async () => {
    const router = await startHaproxy();
    const [stable, canary] = [await named('stable'), await named('canary')];
    await serve(router, share(1, 90, stable), share(2, 10, canary));
    const cookies: string[] = [];
    while (cookies.length < 8000) {
      const visits = await Promise.all(Array.from({ length: 200 }, () => ask(router.port)));
      cookies.push(...visits.map(({ headers }) => headers['set-cookie']![0]!));
    }
    assert.equal(new Set(cookies).size, cookies.length);
    assert.equal(canary.seen.length, 800);
  });

  test('counts requests and errors by revision', async () => {
    const router = await startHaproxy();
    const failing = await named('x', 500);
    await serve(router, share(7, 100, failing));
    for (let n = 0; n < 20; n++) await ask(router.port);
    await until('all to be counted', async () => (await router.counted(7)).requests === 20);
    assert.deepEqual(await router.counted(7), { requests: 20, errors: 20, clientErrors: 0 });
  });

  test('a log that is cut off is followed again, and nothing is counted twice', async () => {
    const router = await startHaproxy();
    const one = await named('one');
    await serve(router, share(3, 100, one));
    for (let n = 0; n < 10; n++) await ask(router.port);
    await until('all to be counted', async () => (await router.counted(3)).requests === 10);
    const sessions = await command(router.files.adminSocket, 'show sess');
    const followers = sessions.split('\n').filter((line) => line.includes('fe=GLOBAL'));
    for (const line of followers) await command(router.files.adminSocket, `shutdown session ${line.split(':')[0]}`);
    for (let n = 0; n < 10; n++) await ask(router.port);
    await until('all to be counted again', async () => (await router.counted(3)).requests === 20);
  });

  test('a silence is broken once, so that no line waits for the next; also in a worker that was replaced', async () => {
    const router = await startHaproxy();
    const one = await named('one');
    await serve(router, share(1, 100, one));
    const lines: string[] = [];
    const log = follow(
      router.files.adminSocket,
      'show events requests -w',
      (line) => lines.push(line),
      () => {},
    );
    const wakes = () => lines.filter((line) => line === 'wake').length;
    const wakesAfter = async (request: () => Promise<unknown>) => {
      const before = wakes();
      await request();
      await until('the silence to be broken', async () => {
        await router.counted(1);
        return wakes() > before;
      });
      await router.counted(1);
      return wakes() - before;
    };
    const kept = new Wire(router.port);
    const visit = async () => {
      const before = one.seen.length;
      kept.write(getRequest());
      await kept.until('an answer', () => one.seen.length > before && kept.text.endsWith('one'));
    };
    await router.counted(1);
    assert.equal(await wakesAfter(visit), 1);
    await reload(router.files);
    await router.counted(1); // the reload wrote lines, too
    assert.equal(await wakesAfter(visit), 1);
    assert.equal((await router.counted(1)).requests, 2);
    log.close();
  });

  test('a process that follows finds it running, with what was counted', async () => {
    const router = await startHaproxy();
    const one = await named('one');
    await serve(router, share(1, 100, one));
    for (let n = 0; n < 50; n++) await ask(router.port);
    await until('all to be counted', async () => (await router.counted(1)).requests === 50);
    const next = await router.restart();
    assert.equal(next.plane.routers()[0]!.id, router.plane.routers()[0]!.id);
    await until('all to be counted again', async () => (await next.counted(1)).requests === 50);
    for (let n = 0; n < 10; n++) assert.equal((await ask(next.port)).body, 'one');
    const two = await named('two');
    await serve(next, share(2, 100, two));
    assert.equal((await ask(next.port)).body, 'two');
    await until('those, too', async () => (await next.counted(1)).requests === 60);
  });

  test('more revisions than there are spare backends: a reload, and nothing fails', async () => {
    const router = await startHaproxy();
    const one = await named('one');
    await serve(router, share(1, 100, one));
    let stopped = false;
    let answered = 0;
    const visits = (async () => {
      while (!stopped) {
        const { status } = await ask(router.port);
        assert.equal(status, 200);
        answered++;
      }
    })();
    const before = router.plane.routers()[0]!;
    const kept = new Wire(router.port);
    kept.write(getRequest());
    await kept.until('an answer', () => kept.text.endsWith('one'));
    const many = Array.from({ length: 300 }, (_, n) => ({
      project: `prj_${n + 2}`,
      environment: 'production',
      hosts: [{ name: `shop-${n}.localhost`, secure: false }],
      shares: [share(1, 100, one)],
    }));
    await router.change(many);
    await until('some more visits', () => answered > 50);
    stopped = true;
    await visits;
    const [after, replaced] = router.plane.routers();
    assert.notEqual(after!.id, before.id);
    assert.deepEqual(replaced, before, 'a router with the table of before, while connections may bring it requests');
    assert.equal((await ask(router.port, { host: 'shop-299.localhost' })).body, 'one');
    kept.write(getRequest('/last'));
    assert.match(await kept.untilClosed(), /connection: close[\s\S]*one$/);
    await until('it has ended', () => router.plane.routers().length === 1);
  });

  test('a request that waits for an instance never reaches the one of another project', async () => {
    const router = await startHaproxy();
    const [dead, other] = [await deadTarget(), await named('other')];
    await serve(router, share(1, 100, dead));
    await router.change(Array.from({ length: 124 }, (_, n) => route([share(1, 100, other)], [`taken-${n}.localhost`])));
    let answered = false;
    const waiting = ask(router.port).finally(() => {
      answered = true;
    });
    await router.change([{ ...route([]), hosts: [] }]);
    const others = { ...route([], ['other.localhost']), project: 'prj_other' };
    // Every revision takes a backend, so those that are free go round.
    for (let revision = 1; !answered; revision++) {
      await router.change([{ ...others, shares: [share(revision, 100, other)] }]);
    }
    assert.equal((await waiting).status, 503);
    assert.equal(other.seen.length, 0);
  });

  test('certificates are added, swapped and removed at run time; unknown names get no handshake', async () => {
    const { source, renew } = testCertificates();
    const router = await startHaproxy({ certificates: source, redirect: { port: null } });
    await serve(router, share(1, 100, await named('one')));
    const first = await renew(host);
    router.plane.expireCertificates([host]);
    await until('the first certificate', () => servesTls(router.tls, first));
    assert.equal((await askTls(router.tls)).body.toString(), 'one');
    const worker = router.plane.routers()[0]!.id;
    const second = await renew(host);
    router.plane.expireCertificates([host]);
    await until('the second certificate', () => servesTls(router.tls, second));
    const redirect = await ask(router.port, { path: '/a?b=c' });
    assert.deepEqual([redirect.status, redirect.headers.location], [308, `https://${host}:${router.tls}/a?b=c`]);
    await assert.rejects(askTls(router.tls, {}, { name: 'other.localhost' }));
    const misdirected = await askTls(router.tls, { headers: { host: 'other.localhost' } });
    assert.equal(misdirected.status, 421);
    source.stored.delete(host);
    router.plane.expireCertificates([host]);
    await until('no certificate', async () => !(await servesTls(router.tls, second)));
    assert.equal(router.plane.routers()[0]!.id, worker);
    const third = await renew(host);
    const next = await router.restart();
    await until('the third certificate', () => servesTls(next.tls, third));
  });

  test('the certificate of an environment that is deleted goes with it, also while no process looks after HAProxy', async () => {
    const { source, renew } = testCertificates();
    const router = await startHaproxy({ certificates: source });
    const shares = share(1, 100, await named('one'));
    await serve(router, shares);
    const first = await renew(host);
    router.plane.expireCertificates([host]);
    await until('the certificate', () => servesTls(router.tls, first));
    source.stored.delete(host);
    await router.change([{ ...route([]), hosts: [] }]);
    await until('no certificate', async () => !(await servesTls(router.tls, first)));
    const other = 'other.localhost';
    const second = await renew(other);
    router.plane.expireCertificates([other]);
    await until('the other certificate', async () => (await serialAt(router.tls, other)) === second);
    source.stored.delete(other);
    const next = await router.restart();
    await until('no certificate after the restart', async () => (await serialAt(next.tls, other)) === null);
    await until('its key is gone, too', () => readdirSync(next.files.certificates).length === 0);
  });

  test('what a process that was killed left half done stops no certificate', async () => {
    const { source, renew } = testCertificates();
    const router = await startHaproxy({ certificates: source });
    await serve(router, share(1, 100, await named('one')));
    await renew('other.localhost');
    const { chainPem, keyPem } = source.stored.get('other.localhost')!;
    const left = join(dirname(router.files.adminSocket), 'left.pem');
    await command(router.files.adminSocket, `new ssl cert ${left}`);
    const begun = await command(
      router.files.adminSocket,
      `set ssl cert ${left} <<\n${chainPem.trim()}\n${keyPem.trim()}\n`,
    );
    assert.match(begun, /Transaction created/);
    const first = await renew(host);
    router.plane.expireCertificates([host]);
    await until('the certificate', () => servesTls(router.tls, first));
  });

  test('a certificate that HAProxy did not let go is removed later', async () => {
    const { source, renew } = testCertificates();
    const warnings: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(line) });
    const router = await startHaproxy({ certificates: source, log });
    await serve(router, share(1, 100, await named('one')));
    const first = await renew(host);
    router.plane.expireCertificates([host]);
    await until('the certificate', () => servesTls(router.tls, first));
    const list = (await command(router.files.adminSocket, 'show ssl crt-list')).trim();
    const entry = (await command(router.files.adminSocket, `show ssl crt-list ${list}`)).trim().split('\n').at(-1)!;
    const [file] = entry.split(' ') as [string];
    await command(router.files.adminSocket, `add ssl crt-list ${list} <<\n${file} second.localhost\n`);
    source.stored.delete(host);
    router.plane.expireCertificates([host]);
    await until('it to be refused', () => warnings.some((line) => line.includes('HAProxy refused')));
    assert.ok(await servesTls(router.tls, first));
    const lines = (await command(router.files.adminSocket, `show ssl crt-list -n ${list}`)).split('\n');
    const second = lines.find((line) => line.includes('second.localhost'))!.split(' ')[0]!;
    await command(router.files.adminSocket, `del ssl crt-list ${list} ${second}`);
    await until('no certificate', async () => !(await servesTls(router.tls, first)));
  });

  test('one that does not answer holds up no start, and is found once it does', async () => {
    const router = await startHaproxy();
    await serve(router, share(1, 100, await named('one')));
    const { id } = router.plane.routers()[0]!;
    const worker = Number(id.split('-')[1]);
    await suspend(worker);
    try {
      const next = await router.restart();
      assert.deepEqual(next.plane.routers(), []);
      process.kill(worker, 'SIGCONT');
      await until('it to be found', () => next.plane.routers()[0]?.id === id);
      await serve(next, share(2, 100, await named('two')));
      assert.equal((await ask(next.port)).body, 'two');
    } finally {
      process.kill(worker, 'SIGCONT');
    }
  });

  test('what it did not take while it hung is made good once it answers, and counts from then on', async () => {
    const log = pino({ level: 'silent' });
    const router = await startHaproxy({ log });
    const [one, two] = [await named('one'), await named('two')];
    await serve(router, share(1, 100, one));
    const before = router.plane.routers()[0]!;
    const other = { ...route([share(1, 100, one)], ['other.localhost']), project: 'prj_other' };
    const moved = { ...route([share(2, 100, two)]), hosts: [{ name: 'new.localhost', secure: false }] };
    await whileStopped(before, () => hang(router, moved, other));
    await until('it to catch up', () => router.plane.routers()[0]?.version === before.version + 2);
    assert.equal((await ask(router.port, { host: 'new.localhost' })).body, 'two');
    assert.equal((await ask(router.port, { host: 'other.localhost' })).body, 'one');
    assert.equal((await ask(router.port)).status, 404);
  });

  test('what could not be written is written later', async () => {
    const logged: string[] = [];
    const router = await startHaproxy({ log: pino({ level: 'warn' }, { write: (line) => void logged.push(line) }) });
    const [one, two] = [await named('one'), await named('two')];
    await serve(router, share(1, 100, one));
    const { version } = router.plane.routers()[0]!;
    const obstacle = `${router.files.routes}.new`;
    await mkdir(obstacle);
    router.plane.change(version + 1, [route([share(2, 100, two)])]);
    const other = { ...route([share(1, 100, one)], ['other.localhost']), project: 'prj_other' };
    router.plane.change(version + 2, [other]);
    await until('both to fail', () => logged.filter((line) => line.includes('it is tried again')).length >= 2);
    assert.equal(router.plane.routers()[0]!.version, version);
    await rm(obstacle, { recursive: true });
    await until('both to be in force', () => router.plane.routers()[0]?.version === version + 2);
    assert.equal((await ask(router.port)).body, 'two');
    assert.equal((await ask(router.port, { host: 'other.localhost' })).body, 'one');
  });

  test('a process that follows one whose changes it did not take says so, and makes them', async () => {
    const joined: number[] = [];
    const log = pino({ level: 'silent' });
    const router = await startHaproxy({ log, onJoining: ({ version }) => void joined.push(version) });
    const [one, two] = [await named('one'), await named('two')];
    await serve(router, share(1, 100, one));
    const before = router.plane.routers()[0]!;
    const many = Array.from({ length: 200 }, (_, n) => route([share(1, 100, one)], [`many-${n}.localhost`]));
    const others = many.map((routes, n) => ({ ...routes, project: `prj_${n}` }));
    await whileStopped(before, async () => {
      await hang(router, route([share(2, 100, two)], [host, 'new.localhost']), ...others);
      await router.plane.stop(0);
    });
    joined.length = 0;
    const next = await router.restart([route([share(2, 100, two)], [host]), ...others]);
    assert.ok(joined.length > 0 && joined.every((version) => version <= before.version), String(joined));
    assert.equal((await ask(next.port)).body, 'two');
    assert.equal((await ask(next.port, { host: 'many-199.localhost' })).body, 'one');
    assert.equal((await ask(next.port, { host: 'new.localhost' })).status, 404);
  });

  test('http-01 challenges are answered for any host', async () => {
    const { source } = testCertificates();
    source.challenges.set('new.example abc', 'abc.thumbprint');
    const router = await startHaproxy({ certificates: source });
    const path = '/.well-known/acme-challenge/abc';
    assert.equal((await ask(router.port, { host: 'new.example', path })).body, 'abc.thumbprint');
    assert.equal((await ask(router.port, { host: 'other.example', path })).status, 404);
  });

  test('it comes back by itself with the last table', async () => {
    const router = await startHaproxy();
    await serve(router, share(1, 100, await named('one')));
    const { id } = router.plane.routers()[0]!;
    process.kill(Number(id.split('-')[1]), 'SIGKILL');
    await until('another worker that answers', async () => {
      const other = router.plane.routers()[0];
      if (!other || other.id === id) return false;
      return (await ask(router.port)).body === 'one';
    });
  });

  test('a worker that ended while nobody watched takes its row along', async () => {
    const left: string[] = [];
    const router = await startHaproxy({ onLeft: (id) => left.push(id) });
    await serve(router, share(1, 100, await named('one')));
    const { id } = router.plane.routers()[0]!;
    await router.stop(0);
    const next = await router.restart();
    assert.deepEqual(left, [id]);
    assert.equal((await ask(next.port)).body, 'one');
    await next.restart();
    assert.deepEqual(left, [id], 'once, and not the one that runs on');
  });

  test('an environment that is gone answers 404, and its backends are free again', async () => {
    const router = await startHaproxy();
    const one = await named('one');
    for (let n = 1; n <= 150; n++) await serve(router, share(n, 100, one));
    assert.equal((await ask(router.port)).body, 'one');
    await router.change([{ ...route([]), hosts: [] }]);
    assert.equal((await ask(router.port)).status, 404);
  });
});

const serve = (router: TestHaproxy, ...shares: Share[]) => router.change([route(shares, [host], true)]);

const pidOf = ({ id }: RouterState) => Number(id.split('-')[1]);

async function whileStopped(router: RouterState, work: () => Promise<void>): Promise<void> {
  await suspend(pidOf(router));
  try {
    await work();
  } finally {
    process.kill(pidOf(router), 'SIGCONT');
  }
}

/** Two changes: it does not answer to the first, and the second is not even tried. */
async function hang({ plane }: TestHaproxy, first: EnvironmentRoutes, ...others: EnvironmentRoutes[]): Promise<void> {
  const { version } = plane.routers()[0]!;
  plane.change(version + 1, [first]);
  await until('it to be given up', () => plane.routers().length === 0);
  plane.change(version + 2, others);
}

function testCertificates() {
  const stored = new Map<string, StoredCertificate>();
  const challenges = new Map<string, string>();
  const source: CertificateSource & { stored: typeof stored; challenges: typeof challenges } = {
    stored,
    challenges,
    async find(name, known) {
      const found = stored.get(name) ?? null;
      return found !== null && found.id === known ? 'current' : found;
    },
    answerChallenge: async (name, token) => challenges.get(`${name} ${token}`) ?? null,
  };
  const renew = async (name: string) => {
    const { certificate, key, serial } = await issue(name);
    stored.set(name, { id: serial, chainPem: certificate, keyPem: key });
    return serial;
  };
  return { source, renew };
}

const servesTls = (port: number, serial: string): Promise<boolean> =>
  askTls(port).then(
    (answer) => answer.serial === serial,
    () => false,
  );
