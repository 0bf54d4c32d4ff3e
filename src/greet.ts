import type { App } from './app.ts';
import { adminTokenPath } from './data-dir.ts';

/** People read this, so it is not in the form of the log. */
export function greet(app: App, routerLine: string | null): void {
  const lines = [
    `Sluice listens on ${app.apiUrl()}  (console: /console, reference: /docs)`,
    ...(app.config.roles.includes('catalogue') ? [`the catalogue is at ${app.baseUrl()}/`] : []),
    ...(app.routerUrl ? [`deployed revisions answer on ${app.routerUrl}`] : []),
    ...(app.routerTlsPort === null ? [] : [`their domains answer with TLS on port ${app.routerTlsPort}`]),
    ...(routerLine === null ? [] : [routerLine]),
    ...app.regionLines,
  ];
  if (app.newAdminToken !== null) {
    lines.push(
      '',
      `Admin token, shown this once and kept in ${adminTokenPath(app.config.dataDir)}:`,
      '',
      `  ${app.newAdminToken}`,
      '',
      'A first request:',
      '',
      `  curl ${app.apiUrl()}/v1/projects -H 'Authorization: Bearer ${app.newAdminToken}' \\`,
      `    -H 'Content-Type: application/json' -d '{"name": "My shop"}'`,
      '',
      'Or, in another terminal in this folder: npx sluice projects create "My shop"',
      '',
    );
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}
