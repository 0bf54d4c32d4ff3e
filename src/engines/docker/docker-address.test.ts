import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { connectionOf, reachOf } from './docker-address.ts';

test('an address is a socket or a host, and never what DOCKER_HOST says', () => {
  const socketPath = '/run/user/0/podman.sock';
  assert.deepEqual(connectionOf(socketPath), { socketPath });
  assert.deepEqual(connectionOf(`unix://${socketPath}`), { socketPath });
  assert.deepEqual(connectionOf('tcp://10.0.0.1'), { host: '10.0.0.1', port: 2375 });
  assert.deepEqual(connectionOf('http://engine.example:99'), { host: 'engine.example', port: 99 });
  assert.deepEqual(connectionOf('tcp://[fd00::1]:2375'), { host: 'fd00::1', port: 2375 });
  assert.deepEqual(connectionOf('tcp://10.0.0.1?certs=/etc/docker'), { host: '10.0.0.1', port: 2376 });
});

test('ports are published no wider than they have to be', () => {
  const loopback = { bind: '127.0.0.1', host: '127.0.0.1' };
  const published = (address: string) => {
    const { node, ...where } = reachOf(address);
    return where;
  };
  for (const address of ['/var/run/docker.sock', 'tcp://localhost:2375', 'tcp://127.0.0.1:2375']) {
    assert.deepEqual(published(address), loopback, address);
  }
  assert.deepEqual(published('tcp://10.0.0.1:2375'), { bind: '10.0.0.1', host: '10.0.0.1' });
  assert.deepEqual(published('tcp://engine.example:2375'), { bind: '0.0.0.0', host: 'engine.example' });
});

test('the node of an engine is this machine, or the host in its address', () => {
  assert.equal(reachOf('/var/run/docker.sock').node, hostname());
  assert.equal(reachOf('tcp://engine.example:2375').node, 'engine.example');
});
