// SLUICE_TEST_KUBECONFIG=… SLUICE_TEST_REGISTRY=host:port npm run test:kubernetes [-- file …]: what needs a real cluster.
// Its pods have to be reachable from here, and the registry from here and from its nodes. See docs/testing.md.
import { globSync } from 'node:fs';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { installMissing } from './packages.ts';

const missing = ['SLUICE_TEST_KUBECONFIG', 'SLUICE_TEST_REGISTRY'].filter((name) => !process.env[name]);
if (missing.length > 0) {
  console.error(
    `${missing.join(' and ')} must be set: a cluster to test on, and a registry that it and this machine reach.`,
  );
  process.exit(1);
}
installMissing(['busybox']);
const chosen = process.argv.slice(2);
const files = chosen.length > 0 ? chosen : globSync('test/kubernetes/*.cluster.ts').sort();
let passed = 0;
let failed = 0;
// One after another: they share the nodes, and some of them take what the others would need.
const stream = run({ files, concurrency: 1, timeout: 1_200_000 });
stream.on('test:pass', ({ details }) => void (details.type !== 'suite' && passed++));
stream.on('test:fail', () => void failed++);
for await (const text of stream.compose(spec)) process.stdout.write(text);
console.log(`\n${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
