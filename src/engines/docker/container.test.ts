import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOptions, instanceOf } from './container.ts';
import type { ContainerInfo } from './docker-api.ts';

const reach = { bind: '127.0.0.1', host: '127.0.0.1', node: 'here' };
const spec = { id: 'i1', project: 'prj_1', environment: 'production', revision: 7, port: 8080, hostPort: null };
const resources = { memory_mb: 256, cpus: 0.5 };
const digest = `sha256:${'0'.repeat(64)}`;
const options = createOptions({ ...spec, image: 'shop', digest, variables: {}, resources }, 'here', reach, 'net');
const createdAt = 1_800_000_000;

const seen = (State: string, Status: string, ageS: number) =>
  instanceOf(
    {
      ...{ State, Status, Labels: options.Labels, Created: createdAt },
      Ports: [
        { Type: 'tcp', PrivatePort: 9090 },
        { Type: 'tcp', PrivatePort: 8080, PublicPort: 32768, IP: '127.0.0.1' },
      ],
    } as ContainerInfo,
    reach,
    (createdAt + ageS) * 1000,
  );

const address = { host: '127.0.0.1', port: 32768 };

test('a container in each of its states', () => {
  const { port, hostPort, ...named } = spec;
  const labels = { ...named, node: 'here' };
  const running = { ...labels, state: 'running', address, exitCode: null };
  const ended = { ...labels, state: 'exited', address: null, exitCode: null };
  assert.deepEqual(seen('running', 'Up 2 seconds', 2), running);
  assert.deepEqual(seen('paused', 'Up 2 seconds (Paused)', 2), running);
  assert.deepEqual(seen('exited', 'Exited (137) 3 hours ago', 9), { ...ended, exitCode: 137 });
  assert.deepEqual(seen('dead', 'Dead', 9), ended);
  assert.equal(seen('removing', 'Removal In Progress', 9), null);
  assert.equal(seen('created', 'Created', 2)?.state, 'created');
  assert.deepEqual(seen('created', 'Created', 121), ended);
});

test('a variable of the user wins over ours, the port over both', () => {
  const variables = { DEPLOY_REVISION: 'mine', PORT: '1' };
  const { Env = [] } = createOptions({ ...spec, image: 'shop', digest, variables, resources }, 'here', reach, 'net');
  assert.ok(Env.includes('DEPLOY_REVISION=mine') && Env.includes('PORT=8080') && Env.includes('DEPLOY_INSTANCE=i1'));
  assert.equal(Env.filter((line) => line.startsWith('PORT=')).length, 1);
});
