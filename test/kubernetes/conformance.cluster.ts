// The engine conformance suite on a real cluster.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { connectKubernetes } from '../../src/engines/kubernetes/kube-client.ts';
import { engineConformance } from '../engines/conformance.ts';
import { cleanUp, cuttableAccess, imageOf, openEngine, registry } from './cluster.ts';

const [web, exits, stubborn, chatty] = await Promise.all(
  (['web', 'exits', 'stubborn', 'chatty'] as const).map(async (kind) => ({
    image: await imageOf(kind),
    variables: {},
  })),
);
const way = await cuttableAccess();
const probe = connectKubernetes(way.access);
// After all that is awaited: it would be done too early otherwise.
after(async () => {
  await probe.close();
  way.close();
  await cleanUp();
});

engineConformance('Kubernetes', {
  create: async (installation) => openEngine(installation, { access: way.access }),
  outlivesProcess: true,
  web: web!,
  missing: { image: `${registry.host}/sluice-test-missing:v1`, variables: {} },
  exits: { ...exits!, exitCode: 3 },
  stubborn: stubborn!,
  chatty: { ...chatty!, lines: 23 },
  restartsPrograms: true,
  namesInstances: true,
  mixesStreams: true,
  preparesWithout: true,
  outage: {
    async begin() {
      way.cut();
      // Then the connections that were open have ended here too.
      await assert.rejects(probe.request({ path: '/version' }));
    },
    end: async () => way.mend(),
  },
});
