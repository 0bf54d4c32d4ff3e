import { existsSync } from 'node:fs';
import { delimiter, join, relative } from 'node:path';
import type { App } from './app.ts';
import { adminTokenPath } from './data-dir.ts';
import { installDir } from './lib/install.ts';

/** People read this, so it is not in the form of the log. Where nobody looks it may be kept, so it has no secret in it then. */
export function greet(app: App, routerLine: string | null, isTerminal: boolean): void {
  process.stdout.write(`${greeting(app, routerLine, isTerminal).join('\n')}\n`);
}

export function greeting(app: App, routerLine: string | null, isTerminal: boolean): string[] {
  const lines = [
    `Sluice listens on ${app.apiUrl()}  (console: /console, reference: /docs)`,
    ...(app.config.roles.includes('catalogue') ? [`the catalogue is at ${app.baseUrl()}/`] : []),
    ...(app.routerUrl ? [`deployed revisions answer on ${app.routerUrl}`] : []),
    ...(app.routerTlsPort === null ? [] : [`their domains answer with TLS on port ${app.routerTlsPort}`]),
    ...(routerLine === null ? [] : [routerLine]),
    ...app.regionLines,
  ];
  if (app.newAdminToken !== null) lines.push(...firstSteps(app, app.newAdminToken, isTerminal));
  return lines;
}

function firstSteps(app: App, token: string, isTerminal: boolean): string[] {
  const path = adminTokenPath(app.config.dataDir);
  const here = dataDirSetting(process.cwd(), app.config.dataDir);
  const shown = [`Admin token, shown this once and kept in ${path}:`, '', `  ${token}`];
  return [
    '',
    ...(isTerminal ? shown : [`The admin token is in ${path}`]),
    '',
    ...(app.config.roles.includes('api') ? [`In a browser, sign in with it at ${app.apiUrl()}/console`, ''] : []),
    'A first request:',
    '',
    `  curl ${app.apiUrl()}/v1/projects -H "Authorization: Bearer ${isTerminal ? token : `$(cat '${path}')`}" \\`,
    `    -H 'Content-Type: application/json' -d '{"name": "My shop"}'`,
    '',
    `Or, in another terminal in this folder: ${here}${commandLine(process.cwd(), app.config.searchPath)} projects create "My shop"`,
    '',
  ];
}

/** What a command needs to find this service, which it looks for in `data` of its folder. */
function dataDirSetting(folder: string, dataDir: string): string {
  if (dataDir === join(folder, 'data')) return '';
  return `SLUICE_DATA_DIR=${/[^\w./-]/.test(dataDir) ? `'${dataDir.replaceAll("'", "'\\''")}'` : dataDir} `;
}

/** Where the program is not found, npx would run a package of that name from the registry, whatever that is. */
function commandLine(folder: string, searchPath: string | null): string {
  if (relative(installDir, folder) === '' || existsSync(join(folder, 'node_modules/.bin/sluice'))) return 'npx sluice';
  // npx adds its own folder to the path of what it runs, not to that of another terminal.
  const lasting = (searchPath ?? '').split(delimiter).filter((entry) => !entry.includes('node_modules'));
  if (lasting.some((entry) => existsSync(join(entry, 'sluice')))) return 'sluice';
  return `node ${join(installDir, 'bin/sluice.js')}`;
}
