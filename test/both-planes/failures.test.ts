// Instances that fail, and instances and routers that drain: which requests go elsewhere, and which end where they are.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Target } from '../../src/traffic/data-plane.ts';
import { refusesConnections, statusOf, Wire } from '../helpers/raw-http.ts';
import { ask, deadTarget, getRequest, host, named, share, startInstance, startRouter } from '../helpers/router.ts';
import { onPlane, plane } from '../helpers/router-plane.ts';
import { until } from '../helpers/wait.ts';

/**
 * An instance that answers two requests once both have come, and then is as one whose machine is gone, as far as a
 * process can be: it is stopped, and has as many connections waiting as it takes, so that no further one is made.
 */
async function startLosable(): Promise<{ target: Target; lose(): Promise<void> }> {
  const program = `
    const held = [];
    const server = require('node:http').createServer((_, response) => {
      if (held.push(response) === 2) for (const each of held) each.end('there');
    });
    server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => console.log(server.address().port));`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const waiting: Socket[] = [];
  after(() => {
    for (const socket of waiting) socket.destroy();
    child.kill('SIGKILL');
  });
  const port = Number(String((await once(child.stdout, 'data'))[0]));
  const lose = async () => {
    child.kill('SIGSTOP');
    for (let isTaken = true; isTaken; ) {
      const socket = connect({ host: '127.0.0.1', port });
      socket.on('error', () => {});
      waiting.push(socket);
      isTaken = await Promise.race([once(socket, 'connect').then(() => true), pause(300, false)]);
    }
  };
  return { target: { instance: 'ins_lost', host: '127.0.0.1', port }, lose };
}

function failures() {
  test('2,000 requests with a dead instance, while tables change: none fails', async () => {
    const router = await startRouter();
    const dead = await deadTarget();
    const live = [await named('a'), await named('b'), await named('c')];
    // HAProxy waits for a second before it asks the only server that is left, and by then this table has changed ten times.
    const more = (...targets: Target[]) => onPlane({ builtin: [], haproxy: targets });
    const tables = [
      [share(1, 100, dead, live[0]!, live[1]!)],
      [share(1, 80, live[0]!, dead, ...more(live[1]!)), share(2, 20, live[1]!, live[2]!)],
      [share(1, 50, live[1]!, dead, ...more(live[0]!)), share(2, 50, dead, ...more(live[2]!, live[0]!))],
      [share(2, 100, live[2]!, dead)],
    ];
    let done = 0;
    const failed: number[] = [];
    const worker = async () => {
      while (done < 2000) {
        if (done++ % 25 === 0) await router.serve(...tables[((done / 25) % 4) | 0]!);
        const post = done % 3 === 0;
        const { status } = await ask(router.port(), post ? { method: 'POST', body: 'x'.repeat(done) } : {});
        if (status !== 200) failed.push(status);
      }
    };
    await router.serve(...tables[0]!);
    await Promise.all(Array.from({ length: 16 }, worker));
    assert.deepEqual(failed, []);
  });

  test('a body that no instance has read goes to the next one whole', async () => {
    const router = await startRouter();
    const echo = await startInstance((request, response) => request.pipe(response));
    await router.serve(share(1, 100, await deadTarget(), echo));
    const body = 'b'.repeat(200_000);
    for (let i = 0; i < 3; i++) {
      assert.equal((await ask(router.port(), { method: 'POST', body })).body, body);
    }
  });

  test('a connection that breaks before a response: GET is sent again, POST is not', async () => {
    const router = await startRouter();
    const breaking = await startInstance((request) => request.resume().on('end', () => request.socket.destroy()));
    const good = await named('good');
    await router.serve(share(1, 100, breaking, good));
    for (let i = 0; i < 6; i++) assert.equal((await ask(router.port())).body, 'good');
    assert.ok(breaking.seen.length > 0);
    const statuses = [];
    const post = () => ask(router.port(), { method: 'POST', body: 'once' });
    for (let i = 0; i < 6; i++) {
      statuses.push(
        await post().then(
          ({ status }) => status,
          ({ code }) => code,
        ),
      );
    }
    const failed = onPlane({ builtin: [502], haproxy: [502, 'ECONNRESET'] });
    assert.ok(statuses.includes(200) && statuses.some((status) => failed.includes(status)), String(statuses));
    assert.deepEqual(
      statuses.filter((status) => status !== 200 && !failed.includes(status)),
      [],
    );
    const posts = [...breaking.seen, ...good.seen].filter(({ method }) => method === 'POST');
    assert.equal(posts.length, 6, 'each POST was seen once');
  });

  test('502 where the only instance breaks, after two attempts, or HAProxy’s four', async () => {
    const router = await startRouter();
    const breaking = await startInstance((request) => request.socket.destroy());
    await router.serve(share(1, 100, breaking));
    const wire = new Wire(router.port()); // HAProxy closes a kept connection without an answer, so that the client decides
    wire.write(getRequest('/', 'Connection: close\r\n'));
    const answer = await wire.untilClosed();
    assert.equal(statusOf(answer), 502);
    const [, requestId] = /x-request-id: (req_\w+)/.exec(answer)!;
    const line = router.logged().find((each) => each.msg === 'a request failed');
    assert.deepEqual(
      [line?.requestId, line?.host, line?.status, line?.code],
      onPlane({ builtin: [requestId, host, 502, 'UND_ERR_SOCKET'], haproxy: Array(4).fill(undefined) }),
    );
    assert.equal(breaking.seen.length, onPlane({ builtin: 2, haproxy: 4 }));
    assert.deepEqual(await router.counted(1), { requests: 1, errors: 1, clientErrors: 0 });
  });

  test('an instance that has closed all kept connections is asked anew', async () => {
    const router = await startRouter();
    const held: (() => void)[] = [];
    let isFirst = true;
    const instance = await startInstance(({ socket }, response) => {
      if (isFirst) held.push(() => response.end('kept'));
      else if (kept.has(socket)) socket.destroy();
      else response.end('anew');
    });
    await router.serve(share(1, 100, instance));
    const first = [ask(router.port()), ask(router.port()), ask(router.port())];
    await until('three are asked', () => held.length === 3);
    const kept = new Set(instance.seen.map(({ socket }) => socket));
    for (const finish of held) finish();
    await Promise.all(first);
    isFirst = false;
    assert.equal((await ask(router.port())).body, 'anew');
  });

  test('504 where the response does not begin in time', async () => {
    const router = await startRouter({ answerHeadMs: 200, idleMs: 200, retryMs: 0 });
    await router.serve(share(1, 100, await startInstance(() => {}), await named('other')));
    const statuses = [(await ask(router.port())).status, (await ask(router.port())).status].sort();
    assert.deepEqual(statuses, [200, 504]);
    assert.deepEqual(await router.counted(1), { requests: 2, errors: 1, clientErrors: 0 });
  });

  // HAProxy 2.6 takes no such limit for servers that are added while it runs.
  const testBuiltIn = plane === 'builtin' ? test : () => {};
  testBuiltIn(
    'a machine that is gone, on kept connections: GET goes elsewhere, POST does not, who is slow is waited for',
    async () => {
      const router = await startRouter({ silentMs: 300, connectMs: 500, answerHeadMs: 6000 });
      const { target, lose } = await startLosable();
      await router.serve(share(1, 100, target));
      const there = await Promise.all([ask(router.port()), ask(router.port())]);
      assert.deepEqual(
        there.map(({ body }) => body),
        ['there', 'there'],
      );
      await lose();
      const slow = await startInstance((_, response) => void setTimeout(() => response.end('slow'), 2000));
      await router.serve(share(1, 100, target, slow));
      // In turn: the first and the third of them go where nobody is any more.
      const post = ask(router.port(), { method: 'POST', body: 'once' });
      const gets = await Promise.all([ask(router.port()), ask(router.port())]);
      assert.deepEqual(
        gets.map(({ body }) => body),
        ['slow', 'slow'],
      );
      assert.equal((await post).status, 504);
      assert.deepEqual(
        slow.seen.map(({ method }) => method),
        ['GET', 'GET'],
      );
      assert.ok(router.logged().some(({ msg, requests }) => requests === 1 && /does not answer/.test(String(msg))));
    },
  );

  testBuiltIn('a machine that is gone, with new connections: one visitor waits, then it is skipped', async () => {
    const clock = { ms: 1_000_000, monotonicMs: 5000, now: () => clock.ms, monotonic: () => clock.monotonicMs };
    const router = await startRouter({ connectMs: 300 }, clock);
    const { target, lose } = await startLosable();
    await lose();
    await router.serve(share(1, 100, target, await named('other')));
    const triesAfter = async (ms: number) => {
      clock.monotonicMs += ms;
      for (let i = 0; i < 4; i++) assert.equal((await ask(router.port())).body, 'other');
      return router.logged().filter(({ msg }) => msg === 'an instance takes no connection').length;
    };
    assert.deepEqual([await triesAfter(0), await triesAfter(9000), await triesAfter(1001)], [1, 1, 2]);
  });

  test('a response that is not HTTP is 502', async () => {
    const router = await startRouter();
    const odd = await startInstance((request) => request.socket.end('SSH-2.0-hello\r\n\r\n'));
    await router.serve(share(1, 100, odd));
    assert.equal((await ask(router.port())).status, 502);
  });

  test('an instance that accepts no connection is skipped, for a second with the built-in proxy', async () => {
    const clock = { ms: 1_000_000, monotonicMs: 5000, now: () => clock.ms, monotonic: () => clock.monotonicMs };
    const router = await startRouter({}, clock);
    const [back, other] = [await named('back'), await named('other')];
    const { port } = back;
    await back.stop();
    await router.serve(share(1, 100, back, other));
    for (let i = 0; i < 4; i++) assert.equal((await ask(router.port())).body, 'other');
    back.server.listen(port, '127.0.0.1');
    await once(back.server, 'listening');
    if (plane === 'builtin') {
      for (let i = 0; i < 4; i++) assert.equal((await ask(router.port())).body, 'other');
    }
    clock.monotonicMs += 1001;
    clock.ms -= 3_600_000; // somebody sets the clock: the second is a second all the same
    const bodies = [(await ask(router.port())).body, (await ask(router.port())).body].sort();
    assert.deepEqual(bodies, ['back', 'other']);
  });
}

function draining() {
  test('requests under way end, their connections close, new ones are refused', async () => {
    const router = await startRouter();
    const finishes: (() => void)[] = [];
    const held = await startInstance((_, response) => {
      finishes.push(() => response.end('late'));
    });
    await router.serve(share(1, 100, held));
    const port = router.port();
    const idle = new Wire(router.port());
    const wire = new Wire(router.port());
    await once(idle.socket, 'connect');
    wire.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    let stopped = false;
    await until('it is asked', () => held.seen.length === 1);
    const stopping = router.stop(10_000).then(() => {
      stopped = true;
    });
    await until('new connections are refused', () => refusesConnections(port));
    if (plane === 'haproxy') idle.write(getRequest('/', 'X-Last: 1\r\n'));
    await until('an idle connection is closed, or takes one more request', () => idle.closed || held.seen.length === 2);
    assert.equal(stopped, false);
    for (const finish of finishes) finish();
    if (plane === 'haproxy') assert.match(await idle.untilClosed(), /connection: close[\s\S]*late/);
    const answer = await wire.untilClosed();
    assert.match(answer, /connection: close/i);
    assert.match(answer, /late/);
    await stopping;
  });

  test('what does not end in time is cut off', async () => {
    const router = await startRouter();
    const held = await startInstance(() => {});
    await router.serve(share(1, 100, held));
    const wire = new Wire(router.port());
    wire.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await until('it is asked', () => held.seen.length === 1);
    await router.stop(50);
    assert.equal(await wire.untilClosed(), '');
  });

  test('an instance that left the table finishes what it has, then its connections close', async () => {
    const router = await startRouter();
    let finish = () => {};
    const old = await startInstance((_, response) => {
      finish = () => response.end('old');
    });
    const fresh = await named('new');
    await router.serve(share(1, 100, old));
    const under = ask(router.port());
    await until('it is asked', () => old.seen.length === 1);
    await router.serve(share(2, 100, fresh));
    assert.equal((await ask(router.port())).body, 'new');
    finish();
    assert.equal((await under).body, 'old');
    await until('its connection closes', () => old.seen[0]!.socket.destroyed);
  });
}

describe('failing instances', failures);
describe('draining', draining);
