// Other people's tools that tests hold our output against (linters and a client generator for the OpenAPI document, a
// packager and two readers of media) live in a package of their own, test/tools, so that nobody who only runs the service
// installs them. This brings them in where they are missing.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const toolsDir = join(import.meta.dirname, '..', 'test', 'tools');

function isInstalled(name: string, version: string): boolean {
  const manifest = join(toolsDir, 'node_modules', name, 'package.json');
  return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version === version;
}

export function installTestTools(): void {
  const { dependencies } = JSON.parse(readFileSync(join(toolsDir, 'package.json'), 'utf8'));
  if (Object.entries<string>(dependencies).every(([name, version]) => isInstalled(name, version))) return;
  console.error('installing test/tools');
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: toolsDir, stdio: ['ignore', 'ignore', 'inherit'] });
}
