import type { AddressInfo } from 'node:net';
import { type App, createApp } from './app.ts';
import { addressOf, readConfig, unknownSettings } from './config.ts';
import { adminTokenPath, recordAddress } from './data-dir.ts';
import { StartError } from './lib/start-error.ts';

const badConfiguration = 78;

export async function run(env: Record<string, string | undefined>, isTerminal: boolean): Promise<void> {
  try {
    const config = readConfig(env, isTerminal);
    const app = await createApp(config);
    for (const name of unknownSettings(env)) app.log.warn({ setting: name }, 'there is no such setting');
    const recorded = config.roles.includes('api') ? recordAddress(config.dataDir, localUrl(app)) : null;
    greet(app);
    stopOnSignals(app, () => recorded?.forget());
  } catch (error) {
    process.exitCode = explain(error);
  }
}

/** Where it is reached on this machine, whatever its public address is. */
function localUrl({ config, server }: App): string {
  return addressOf(config.host, (server.server.address() as AddressInfo).port);
}

function explain(error: unknown): number {
  if (error instanceof StartError) {
    for (const line of error.lines) process.stderr.write(`sluice: ${line}\n`);
    return badConfiguration;
  }
  const { code, message, stack } = error as NodeJS.ErrnoException & { port?: number };
  if (code === 'EADDRINUSE' || code === 'EACCES' || code === 'EADDRNOTAVAIL') {
    process.stderr.write(
      `sluice: ${message}. Is another one running? Ports: SLUICE_PORT, SLUICE_ROUTER_PORT, SLUICE_ROUTER_TLS_PORT.\n`,
    );
    return 1;
  }
  process.stderr.write(`sluice: ${stack}\n`);
  return 1;
}

/** People read this, so it is not in the form of the log. */
function greet(app: App): void {
  const lines = [
    `Sluice listens on ${app.apiUrl()}  (console: /console, reference: /docs)`,
    ...(app.config.roles.includes('catalogue') ? [`the catalogue is at ${app.baseUrl()}/`] : []),
    ...(app.routerUrl ? [`deployed revisions answer on ${app.routerUrl}`] : []),
    ...(app.routerTlsPort === null ? [] : [`their domains answer with TLS on port ${app.routerTlsPort}`]),
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

/** The first signal stops in order; a second one ends at once. */
function stopOnSignals(app: App, onStop: () => void): void {
  let stopping = false;
  const onSignal = async (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1);
    stopping = true;
    app.log.info({ signal }, 'stopping');
    onStop();
    await app.stop();
    app.log.info('stopped');
    app.log.flush(() => process.exit(0));
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
}
