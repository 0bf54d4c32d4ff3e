// `npm run sbom`: the list of what is packed.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { sbom } from '../../scripts/sbom.ts';

interface Locked {
  version: string;
  dev?: boolean;
}

test('every installed package is in the SBOM with its version, and none that is for development', () => {
  const { bomFormat, components, dependencies } = sbom();
  assert.equal(bomFormat, 'CycloneDX');
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Locked> };
  const installed = Object.entries(packages)
    .filter(([path, { dev }]) => path !== '' && !dev && existsSync(path))
    .map(([path, { version }]) => `${path.split('node_modules/').at(-1)} ${version}`);
  const listed = components.map(({ group, name, version }) => `${group ? `${group}/` : ''}${name} ${version}`);
  assert.deepEqual([...new Set(listed)].sort(), [...new Set(installed)].sort());
  const known = new Set(components.map((one) => one['bom-ref']));
  for (const { dependsOn } of dependencies) for (const ref of dependsOn) assert.ok(known.has(ref), ref);
});
