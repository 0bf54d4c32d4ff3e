// npm run sbom: writes dist/sbom.cdx.json, the list of what is packed, as CycloneDX. It is what `npm sbom` says of all installed
// packages, without those for development: with `--omit dev` npm 11 leaves out others, too.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installDir } from '../src/lib/install.ts';

interface Component {
  'bom-ref': string;
  group?: string;
  name: string;
  version: string;
  properties?: { name: string; value: string }[];
}

interface Sbom {
  bomFormat: string;
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

const isForDevelopment = ({ properties = [] }: Component): boolean =>
  properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true');

export function sbom(): Sbom {
  const options = { cwd: installDir, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 } as const;
  const all = JSON.parse(execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx'], options)) as Sbom;
  const left = new Set(all.components.filter(isForDevelopment).map((one) => one['bom-ref']));
  return {
    ...all,
    components: all.components.filter((one) => !left.has(one['bom-ref'])),
    dependencies: all.dependencies
      .filter(({ ref }) => !left.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => !left.has(other)) })),
  };
}

if (import.meta.main) {
  mkdirSync(join(installDir, 'dist'), { recursive: true });
  writeFileSync(join(installDir, 'dist/sbom.cdx.json'), `${JSON.stringify(sbom(), null, 1)}\n`);
}
