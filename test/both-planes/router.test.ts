// A data plane: which instance a request goes to, and what is counted.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { describe, test } from 'node:test';
import { canaryLimit, canaryOffset } from '../../src/traffic/balance.ts';
import type { Measurement } from '../../src/traffic/measurements.ts';
import { combineDetail, type Detail, decodeDetail, groupOf, routeOf } from '../../src/traffic/request-detail.ts';
import { statusOf, Wire } from '../helpers/raw-http.ts';
import { ask, deadTarget, host, named, route, share, startInstance, startRouter } from '../helpers/router.ts';
import { onPlane, plane } from '../helpers/router-plane.ts';
import { until } from '../helpers/wait.ts';

const sum = (numbers: number[]): number => numbers.reduce((total, one) => total + one, 0);

const cookieIn = (headers: { 'set-cookie'?: string[] }) => headers['set-cookie']?.[0]?.split(';')[0];

function routing() {
  test('by host name, whatever its case, port or final dot', async () => {
    const router = await startRouter();
    const [shop, six] = [await named('shop'), await named('six')];
    await router.apply(route([share(1, 100, shop)]), route([share(1, 100, six)], ['[::1]']));
    for (const name of [host, host.toUpperCase(), `${host}:8000`, `${host}.`, `${host}.:80`]) {
      assert.equal((await ask(router.port(), { host: name })).body, 'shop', name);
    }
    for (const name of ['[::1]', '[::1]:8000']) assert.equal((await ask(router.port(), { host: name })).body, 'six');
  });

  test('404 for an unknown host, in a text that repeats nothing of the request', async () => {
    const router = await startRouter();
    const wire = new Wire(router.port());
    wire.write('GET /<script> HTTP/1.1\r\nHost: unknown-evil.example\r\nConnection: close\r\n\r\n');
    const answer = await wire.untilClosed();
    assert.equal(statusOf(answer), 404);
    assert.match(answer, /content-type: text\/plain/);
    assert.match(answer, /cache-control: no-store/);
    assert.match(
      answer,
      onPlane({ builtin: /x-request-id: req_[0-9a-z]{26}/, haproxy: /x-request-id: req_[0-9A-F]{16,}/ }),
    );
    assert.doesNotMatch(answer, /evil|script/);
  });

  test('/livez and /readyz asked by address say that it serves; by host name they are the instance’s own', async () => {
    const router = await startRouter();
    const shop = await named('shop');
    const six = await named('six');
    await router.apply(route([share(1, 100, shop)]), route([share(1, 100, six)], ['[::1]']));
    for (const path of ['/livez', '/readyz']) {
      for (const name of ['10.0.0.7', '10.0.0.7:8000', '[fd00::7]:8000']) {
        const { status, body, headers } = await ask(router.port(), { host: name, path });
        assert.deepEqual([status, body, headers['cache-control']], [200, 'ok\n', 'no-store'], `${name} ${path}`);
      }
      assert.equal((await ask(router.port(), { path })).body, 'shop');
      assert.equal((await ask(router.port(), { host: '[::1]', path })).body, 'six');
      assert.equal((await ask(router.port(), { host: 'unknown.example', path })).status, 404);
      assert.equal((await ask(router.port(), { host: '10.0.0.7', path, method: 'POST' })).status, 404);
      assert.equal((await ask(router.port(), { host: '10.0.0.7', path: `${path}/x` })).status, 404);
    }
  });

  test('503 with Retry-After where no instance serves', async () => {
    const router = await startRouter();
    for (const shares of [[], [share(1, 100)], [share(1, 90), share(2, 10)]]) {
      await router.serve(...shares);
      const { status, headers } = await ask(router.port());
      assert.equal(status, 503);
      assert.match(headers['retry-after']!, /^[1-9]\d*$/);
    }
    assert.deepEqual((await router.counted(1)).errors, (await router.counted(1)).requests);
  });

  test('within a revision each instance in turn; the built-in proxy prefers the one with the fewest requests', async () => {
    const router = await startRouter();
    const busy = await startInstance((_, response) => {
      if (plane === 'haproxy') response.end('busy');
    });
    const [one, two] = [await named('one'), await named('two')];
    await router.serve(share(1, 100, busy, one, two));
    if (plane === 'haproxy') {
      for (let i = 0; i < 30; i++) await ask(router.port());
      assert.deepEqual([busy.seen.length, one.seen.length, two.seen.length], [10, 10, 10]);
      return;
    }
    const wires = Array.from({ length: 3 }, () => new Wire(router.port()));
    for (const wire of wires) wire.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await until('the busy one has a request', () => busy.seen.length === 1);
    await until('the others answered', () => one.seen.length + two.seen.length === 2);
    for (let i = 0; i < 20; i++) await ask(router.port());
    assert.equal(busy.seen.length, 1);
    assert.ok(Math.abs(one.seen.length - two.seen.length) <= 1);
    for (const wire of wires) wire.socket.destroy();
  });
}

function canary() {
  test('thousands of requests at 10 %: the share is right to a tenth of a percentage point', async () => {
    const router = await startRouter();
    const [stable, fresh] = [await named('stable'), await named('canary')];
    await router.serve(share(1, 90, stable), share(2, 10, fresh));
    const visitors = onPlane({ builtin: 10_000, haproxy: 3000 });
    for (let i = 0; i < visitors / 50; i++) await Promise.all(Array.from({ length: 50 }, () => ask(router.port())));
    assert.ok(Math.abs(fresh.seen.length - visitors / 10) <= visitors / 1000, `${fresh.seen.length} of ${visitors}`);
    assert.equal(stable.seen.length + fresh.seen.length, visitors);
    assert.deepEqual(await router.counted(2), { requests: fresh.seen.length, errors: 0, clientErrors: 0 });
  });

  test('a visitor with the cookie moves to the canary once and never back, over three raises', async () => {
    const router = await startRouter();
    const [stable, fresh] = [await named('stable'), await named('canary')];
    await router.serve(share(1, 95, stable), share(2, 5, fresh));
    const visitors = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const { headers, body } = await ask(router.port());
        assert.match(
          headers['set-cookie']![0]!,
          /^sluice_revision=\d{1,4}; Path=\/; Max-Age=86400; HttpOnly; SameSite=Lax$/,
        );
        return { cookie: cookieIn(headers)!, side: body };
      }),
    );
    for (const percent of [5, 25, 60, 100]) {
      await router.serve(share(1, 100 - percent, stable), share(2, percent, fresh));
      for (const visitor of visitors) {
        const { body, headers } = await ask(router.port(), { headers: { cookie: `a=b; ${visitor.cookie}` } });
        if (visitor.side === 'canary') assert.equal(body, 'canary', `${visitor.cookie} at ${percent} %`);
        assert.equal(headers['set-cookie'], undefined);
        visitor.side = body;
      }
      const moved = visitors.filter(({ side }) => side === 'canary').length;
      assert.ok(Math.abs(moved / 2 - percent) <= 2, `${moved} of 200 at ${percent} %`);
    }
  });

  test('without a canary no cookie is given; a malformed one counts as none', async () => {
    const router = await startRouter();
    const [stable, fresh] = [await named('stable'), await named('canary')];
    await router.serve(share(1, 100, stable));
    assert.equal((await ask(router.port())).headers['set-cookie'], undefined);
    await router.serve(share(1, 90, stable), share(2, 10, fresh));
    const { headers } = await ask(router.port(), { headers: { cookie: 'sluice_revision=99999' } });
    assert.match(cookieIn(headers)!, /^sluice_revision=\d{1,4}$/);
  });

  test('where the canary takes no connection the stable revision answers and the canary has the errors', async () => {
    const router = await startRouter();
    const stable = await named('stable');
    await router.serve(share(1, 50, stable), share(2, 50, await deadTarget()));
    for (let i = 0; i < 100; i++) assert.equal((await ask(router.port())).body, 'stable');
    assert.deepEqual(await router.counted(1), { requests: 100, errors: 0, clientErrors: 0 });
    const { requests, errors } = await router.counted(2);
    assert.equal(requests, errors);
    assert.ok(Math.abs(errors - 50) <= 4, String(errors));
  });

  test('the side that takes connections answers for the other, whichever it is, until that is back', async () => {
    const router = await startRouter();
    const [stable, fresh] = [await named('stable'), await named('canary')];
    const both = ['canary', 'stable'];
    await router.serve(share(1, 50, stable), share(2, 50, fresh));
    const answers = async () => {
      const list = await Promise.all(Array.from({ length: 20 }, () => ask(router.port())));
      return [...new Set(list.map(({ body, status }) => (status === 200 ? body : String(status))))].sort();
    };
    assert.deepEqual(await answers(), both);
    for (const [gone, other] of [
      [stable, 'canary'],
      [fresh, 'stable'],
    ] as const) {
      await gone.stop();
      assert.deepEqual(await answers(), [other]);
      gone.server.listen(gone.port, '127.0.0.1');
      await until('it is asked again', async () => (await answers()).length === 2);
    }
    await stable.stop();
    await router.serve(share(2, 100, fresh));
    assert.deepEqual(await answers(), ['canary']);
  });

  test('while a canary runs it is counted whose requests fail, where, and at which instance; and which get no answer', async () => {
    const router = await startRouter();
    const stable = await named('stable');
    const broken = await startInstance((request, response) => {
      if (request.url === '/hang') return;
      response.statusCode = request.url!.startsWith('/cart') ? 500 : 200;
      response.end('canary');
    });
    await router.serve(share(1, 100, stable));
    await ask(router.port());
    const details = new Map<string, { revision: number; at: number; detail: Detail }>();
    const plain: Measurement[] = [];
    const read = () => {
      for (const { revision, detail, ...one } of router.takeMeasurements()) {
        if (detail) details.set(`${revision} ${one.at}`, { revision, at: one.at, detail: decodeDetail(detail) });
        else plain.push({ revision, ...one });
      }
    };
    const windowsOf = (revision: number) => {
      read();
      return [...details.values()].filter((one) => one.revision === revision).sort((a, b) => a.at - b.at);
    };
    const detailOf = (revision: number) =>
      windowsOf(revision)
        .map(({ detail }) => detail)
        .reduce((a, b) => combineDetail(a, b, 1));
    const waitingAt = (revision: number) => sum(windowsOf(revision).at(-1)?.detail.waiting ?? []);
    await until('what is counted without a canary', () => {
      read();
      return plain.length === 1 && details.size === 0;
    });
    await router.serve(share(1, 50, stable), share(2, 50, broken));
    const limit = canaryLimit(50);
    const bucketsOf = (isCanary: boolean) =>
      Array.from({ length: 10_000 }, (_, n) => n).filter((n) => (n + canaryOffset(2)) % 10_000 < limit === isCanary);
    const visit = (bucket: number, path: string) =>
      ask(router.port(), { path, headers: { cookie: `sluice_revision=${bucket}` } });
    const [one, two] = bucketsOf(true) as [number, number];
    for (const path of ['/cart/7', '/cart/8', '/about']) await visit(one, path);
    await visit(two, '/cart/9?item=1');
    const [other] = bucketsOf(false) as [number];
    await visit(other, '/cart/7');
    const hanging = request({
      port: router.port(),
      host: '127.0.0.1',
      path: '/hang',
      headers: { host, cookie: `sluice_revision=${one}` },
    });
    hanging.on('error', () => {}).end();
    await until('the request without an answer', () => waitingAt(2) === 1, 20_000);
    const canary = detailOf(2);
    const ofGroup = ({ requests, failed }: { requests: number; failed: number }) => ({ requests, failed });
    assert.deepEqual(ofGroup(canary.groups[groupOf(one)]!), { requests: 3, failed: 2 });
    assert.deepEqual(ofGroup(canary.groups[groupOf(two)]!), { requests: 1, failed: 1 });
    assert.deepEqual(canary.instances, { [broken.instance]: { requests: 4, failed: 3 } });
    assert.deepEqual(canary.failing, [one, two]);
    const cart = canary.routes[routeOf('/cart/*')]!;
    assert.deepEqual([cart.requests, cart.failed, cart.example], [3, 3, '/cart/*']);
    assert.equal(sum(Object.values(detailOf(1).groups).map(({ failed }) => failed)), 0);
    hanging.destroy();
    await until('that its visitor gave up', () => detailOf(2).abandoned === 1, 20_000);
    await until('that none waits', () => waitingAt(2) === 0, 20_000);
  });

  test('a revision without instances gets no requests', async () => {
    const router = await startRouter();
    await router.serve(share(1, 50), share(2, 50, await named('canary')));
    for (let i = 0; i < 10; i++) assert.equal((await ask(router.port())).body, 'canary');
  });
}

function counting() {
  test('responses of 500 and above are errors, those of 400 and above errors of the client', async () => {
    const router = await startRouter();
    const instance = await startInstance((request, response) => {
      response.statusCode = Number(request.url!.slice(1));
      response.end();
    });
    await router.serve(share(3, 100, instance));
    for (const status of [200, 204, 304, 404, 499, 500, 503]) await ask(router.port(), { path: `/${status}` });
    assert.deepEqual(await router.counted(3), { requests: 7, errors: 2, clientErrors: 2 });
    assert.deepEqual(router.takeMeasurements(), []);
  });

  test('a client that goes away is counted, and is no error', async () => {
    const router = await startRouter();
    const slow = await startInstance(() => {});
    await router.serve(share(1, 100, slow));
    const wire = new Wire(router.port());
    wire.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await until('it is asked', () => slow.seen.length === 1);
    wire.socket.destroy();
    await until('the instance is let go', () => slow.seen[0]!.socket.destroyed);
    assert.deepEqual(await router.counted(1), { requests: 1, errors: 0, clientErrors: 0 });
  });

  test('a response that breaks off is an error, and the client sees it break off', async () => {
    const router = await startRouter();
    const breaking = await startInstance((request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half');
      setImmediate(() => request.socket.destroy());
    });
    await router.serve(share(1, 100, breaking));
    const wire = new Wire(router.port());
    wire.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    assert.match(await wire.untilClosed(), /half$/);
    assert.deepEqual(await router.counted(1), { requests: 1, errors: 1, clientErrors: 0 });
  });

  test('latency is the time to the head of the response', async () => {
    const clock = { ms: 1_000_000, now: () => clock.ms };
    const router = await startRouter({}, clock);
    const slow = await startInstance((_, response) => {
      clock.ms += 120;
      if (plane === 'builtin') response.end();
      else setTimeout(() => response.end(), 120);
    });
    await router.serve(share(1, 100, slow));
    await ask(router.port());
    const [{ latency }] = await until('a measurement', () => {
      const taken = router.takeMeasurements();
      return taken.length > 0 && (taken as [Measurement]);
    });
    if (plane === 'builtin')
      assert.equal(latency[12], 1); // above 100, up to 150
    else assert.deepEqual([sum(latency.slice(0, 12)), sum(latency.slice(12))], [0, 1]);
  });
}

describe('routing', routing);
describe('canary', canary);
describe('measurements', counting);
