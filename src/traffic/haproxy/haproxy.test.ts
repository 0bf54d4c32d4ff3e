import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addServer, Backends, backendText, moveServer, readServersState, serversOf } from './backends.ts';
import { choosePlane, judgeHaproxy } from './choose-plane.ts';
import { routeValue } from './haproxy-config.ts';
import { readLogLine, readSessions } from './request-log.ts';

const routes = (...shares: [revision: number, percent: number][]) => ({
  project: 'prj_1',
  environment: 'production',
  hosts: [{ name: 'shop.localhost', secure: false }],
  shares: shares.map(([revision, percent]) => ({ revision, percent, targets: [] })),
});

test('a route is one value of the map; without a canary its limit is 0', () => {
  const backendOf = (revision: number) => `b${revision}`;
  assert.equal(routeValue(routes([3, 100]), false, backendOf), 'b3|-|0|0|0|prj_1|production|3|0|plain');
  assert.match(routeValue(routes([3, 100]), true, backendOf), /\|secure$/);
  assert.equal(routeValue(routes([3, 75], [4, 25]), true, backendOf), 'b3|b4|4724|2500|1|prj_1|production|3|4|other');
  assert.equal(routeValue(routes(), false, backendOf), '-|-|0|0|0|prj_1|production|0|0|other');
});

test('a log line: latency is the time to the head of the response; errors are those of the instance', () => {
  const line = (rest: string) => readLogLine(`1794755625072 b2|-|0|0|0|prj_1|production|2|0|plain ${rest}`);
  const noBody = '90 - ins_1 -';
  assert.deepEqual(line(`200 1 2 30 90 -- ${noBody}`), {
    ...{ at: 1794755625072, project: 'prj_1', environment: 'production', revision: 2, tookMs: 33, outcome: 'ok' },
    unit: null,
    standIn: null,
  });
  assert.equal(line(`500 0 0 5 5 -- ${noBody}`)!.outcome, 'error');
  assert.deepEqual(
    [line(`503 0 -1 -1 7 SC ${noBody}`)!.outcome, line(`503 0 -1 -1 7 SC ${noBody}`)!.tookMs],
    ['error', 7],
  );
  assert.equal(line(`200 0 0 5 900 SD ${noBody}`)!.outcome, 'error', 'a response that broke off');
  assert.equal(line(`-1 0 0 -1 400 CH ${noBody}`)!.outcome, 'ok', 'a visitor that went away');
  assert.equal(line('504 0 0 -1 400 sH 195 5000 ins_1 -')!.outcome, 'ok', 'an upload that does not go on');
  assert.equal(line('504 0 0 -1 400 sH 5195 5000 ins_1 -')!.outcome, 'error');
  assert.equal(line(`-1 0 0 -1 2400 CH ${noBody}`)!.outcome, 'abandoned', 'it had waited for long');
  assert.deepEqual(line('200 0 0 5 5 -- 90 - ins_1 2|4711|/cart/items/7')!.unit, {
    ...{ bucket: 4711, instance: 'ins_1', pattern: '/cart/items' },
  });
  const instead = line('200 0 0 5 5 -- 90 - r1.ins_9 3|4711|/cart')!;
  assert.deepEqual([instead.revision, instead.standIn, instead.unit!.instance], [3, 1, 'ins_9']);
  assert.equal(line('200 0 0 5 5 -- 90 - w.ins_1 2|4711|/cart|x')!.unit!.instance, 'ins_1');
  assert.equal(readLogLine('1794755625072 - 404 -1 -1 -1 0 LR 90 - <NOSRV> -'), null);
  assert.equal(readLogLine('Server b1/ins_1 is UP/READY (leaving forced maintenance).'), null);
});

test('sessions that wait for the head of a response; one whose body is under way does not', () => {
  const session = (age: string, analysers: string, server = 'ins_1') =>
    `0x55d0: proto=tcpv4 src=127.0.0.1:39602 fe=visitors-in be=b3 srv=${server} ts=00 epoch=0 age=${age} calls=3 rate=0 cpu=0 lat=0 ` +
    `rq[f=c40000h,i=0,an=8000h,rx=,wx=,ax=] rp[f=80400000h,i=0,an=${analysers}h,rx=55s,wx=,ax=] scf=[8,0h,fd=16] exp=55s`;
  const waiting = [session('4s', '1400000'), session('1m2s', '1400000', 'r7.ins_2')];
  const text = [...waiting, session('9s', '4000000'), ''].join('\n');
  assert.deepEqual(readSessions(text), [
    { backend: 'b3', standIn: null, ageMs: 3000 },
    { backend: 'b3', standIn: 7, ageMs: 61_000 },
  ]);
});

test('backends: a use keeps its name; released ones come last; spare ones are made by growing', () => {
  const backends = new Backends(2, [['a', 'b2']]);
  assert.deepEqual([backends.assign('a'), backends.assign('b'), backends.assign('c')], ['b2', 'b1', null]);
  assert.deepEqual(backends.grow(4), ['b3', 'b4']);
  backends.release('b');
  assert.deepEqual([backends.assign('c'), backends.assign('d'), backends.assign('e')], ['b3', 'b4', 'b1']);
});

test('servers: addresses of both families, as text and back', () => {
  const targets = [
    { instance: 'ins_1', host: '127.0.0.1', port: 8080 },
    { instance: 'ins_2', host: '::1', port: 8081 },
  ];
  const servers = serversOf({ revision: 1, percent: 100, targets }, undefined);
  assert.match(
    backendText('b1', 'p/e/1', servers),
    /^# p\/e\/1\nbackend b1\n {4}server ins_1 127\.0\.0\.1:8080 .*\n.*\[::1\]:8081 /,
  );
  assert.equal(moveServer('b1', 'ins_2', '[::1]:8081'), 'set server b1/ins_2 addr ::1 port 8081');
  const state = '1\n# be_id be_name …\n4 b1 1 ins_1 127.0.0.1 2 0 1 1 17 1 0 0 0 0 0 0 - 8080 - 0 0 - - 0\n';
  assert.deepEqual(readServersState(state), [
    { backend: 'b1', server: 'ins_1', address: '127.0.0.1:8080', inMaintenance: false },
  ]);
});

test('while a canary runs, connections are observed, and the other side stands in; not where one side has no instance', () => {
  const shareOf = (revision: number, ...instances: string[]) => ({
    revision,
    percent: 50,
    targets: instances.map((instance, i) => ({ instance, host: '127.0.0.1', port: 8080 + i })),
  });
  const [stable, canary] = [shareOf(1, 'ins_1'), shareOf(2, 'ins_2', 'ins_3')];
  assert.deepEqual([...serversOf(stable, canary).keys()], ['w.ins_1', 'r2.ins_2', 'r2.ins_3']);
  assert.deepEqual([...serversOf(stable, shareOf(2)).keys()], ['ins_1']);
  assert.deepEqual([...serversOf(shareOf(2), stable).keys()], []);
  const [own, other] = ['w.ins_2', 'r1.ins_1'].map((name) => addServer('b2', name, '127.0.0.1:1'));
  assert.match(own![0]!, / check .*observe layer4 .*mark-down$/);
  assert.equal(own!.at(-1), 'enable health b2/w.ins_2');
  assert.match(other![0]!, / backup$/);
  assert.equal(other!.length, 2);
});

test('a HAProxy has to be 2.6 or newer, with TLS and PCRE', () => {
  const printed = (version: string, features: string) =>
    `HAProxy version ${version} 2023/03/28\nFeature list : ${features}\n`;
  const all = '-51DEGREES +OPENSSL +PCRE2 +PCRE2_JIT';
  assert.deepEqual(judgeHaproxy(printed('2.6.12-1+deb12u4', all)), { version: '2.6.12-1+deb12u4', lacks: null });
  assert.equal(judgeHaproxy(printed('3.1.0', all)).lacks, null);
  assert.equal(judgeHaproxy(printed('2.4.22', all)).lacks, 'is 2.4.22, and 2.6 is needed');
  assert.equal(judgeHaproxy(printed('2.8.1', '-OPENSSL +PCRE2')).lacks, 'is built without OpenSSL');
  assert.equal(judgeHaproxy(printed('2.8.1', '+OPENSSL -PCRE -PCRE2 +x')).lacks, 'is built without PCRE');
  assert.equal(judgeHaproxy('').lacks, 'does not tell its version');
});

test('auto is the built-in router where HAProxy is missing or cannot have its ports', () => {
  const auto = {
    setting: 'auto',
    haproxy: null,
    hasFixedPorts: true,
    hasReceivedPorts: false,
    searchPath: '',
  } as const;
  assert.match(choosePlane(auto).line, /built-in one: HAProxy is not installed/);
  assert.match(choosePlane({ ...auto, hasFixedPorts: false }).line, /built-in one: HAProxy needs ports/);
  assert.match(choosePlane({ ...auto, hasReceivedPorts: true }).line, /built-in one: systemd holds its ports/);
  const named = choosePlane({ ...auto, setting: 'haproxy', haproxy: '/opt/haproxy' });
  assert.equal(named.haproxy, '/opt/haproxy');
});
