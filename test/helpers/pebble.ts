// A real ACME server and the DNS it asks (Debian package pebble), on free ports of loopback. It rejects half of the
// nonces it gave out itself.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as x509 from '@peculiar/x509';
import { Agent, request } from 'undici';
import { acmePrograms, onPath } from '../../scripts/packages.ts';
import type { Lookup } from '../../src/webhooks/receiver-addresses.ts';
import { freePort } from './free-port.ts';
import { until } from './wait.ts';

const absent = acmePrograms.filter((program) => !onPath(program));

/** Why there is no ACME server here to test with, or false. For `{ skip: pebbleMissing }`. */
export const pebbleMissing: string | false = absent.length > 0 && `${absent.join(', ')} not installed`;

export interface Pebble {
  directory: string;
  /** For SLUICE_ACME_CA_FILE. */
  caFile: string;
  /** The root its certificates lead to; another one after each start. */
  root(): Promise<string>;
  /** How many orders it was given since it was started. */
  orders(): number;
  directoryDocument(): Promise<object>;
  /** Of the server's own address, for another that stands beside it. */
  own: { cert: string; key: string };
  /** Sets what a name resolves to. Names that were not set resolve to 127.0.0.1; with null, the lookup fails. */
  point(hostname: string, address: string | null): Promise<void>;
  /** Asks the same DNS. */
  lookup: Lookup;
  /** Ends it at once. It forgets all that it knew. */
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface PebbleOptions {
  /** Where it looks for answers to challenges. */
  httpPort: number;
  validityS?: number;
  /** Of a hundred. */
  rejectedNonces?: number;
}

const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

function run(program: string, args: string[], env: Record<string, string> = {}) {
  const child = spawn(program, args, { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  const exited = once(child, 'close').then(() => children.delete(child));
  let output = '';
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  return {
    output: () => output,
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

export async function startPebble({ httpPort, validityS, rejectedNonces = 50 }: PebbleOptions): Promise<Pebble> {
  const home = mkdtempSync(join(tmpdir(), 'sluice-pebble-'));
  const [port, management, dns, dnsControl] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const caFile = join(home, 'cert.pem');
  const keyFile = join(home, 'key.pem');
  const own = await selfSigned();
  writeFileSync(caFile, own.certificate);
  writeFileSync(keyFile, own.key, { mode: 0o600 });
  const config = join(home, 'pebble.json');
  const settings = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: caFile,
    privateKey: keyFile,
    httpPort,
    tlsPort: 1,
    ocspResponderURL: '',
    externalAccountBindingRequired: false,
    ...(validityS !== undefined && { certificateValidityPeriod: validityS }),
  };
  writeFileSync(config, JSON.stringify({ pebble: settings }));

  const names = run('pebble-challtestsrv', [
    ...['-management', `127.0.0.1:${dnsControl}`, '-dns01', `127.0.0.1:${dns}`],
    ...['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv4', '127.0.0.1', '-defaultIPv6', ''],
  ]);
  const agent = new Agent({ connect: { ca: own.certificate } });
  const directory = `https://127.0.0.1:${port}/dir`;
  const answers = (url: string) =>
    request(url, { dispatcher: agent }).then(
      async ({ statusCode, body }) => ((await body.text()) && statusCode < 500 ? true : undefined),
      () => undefined,
    );
  const tell = async (what: string, body: object) => {
    const answer = await fetch(`http://127.0.0.1:${dnsControl}/${what}`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    assert.equal(answer.status, 200, what);
  };
  const resolver = new Resolver({ timeout: 2000, tries: 1 });
  resolver.setServers([`127.0.0.1:${dns}`]);
  let server: ReturnType<typeof run> | null = null;
  const kill = async () => {
    await server?.kill();
    server = null;
  };
  const start = async () => {
    const env = { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: String(rejectedNonces), PEBBLE_AUTHZREUSE: '0' };
    server = run('pebble', ['-config', config, '-dnsserver', `127.0.0.1:${dns}`], env);
    await until(`pebble: ${server.output()}`, () => answers(directory));
  };
  await start();
  return {
    directory,
    caFile,
    async root() {
      const { body } = await request(`https://127.0.0.1:${management}/roots/0`, { dispatcher: agent });
      return body.text();
    },
    orders: () => [...(server?.output() ?? '').matchAll(/Added order/g)].length,
    directoryDocument: async () => (await request(directory, { dispatcher: agent })).body.json() as Promise<object>,
    own: { cert: own.certificate, key: own.key },
    async point(hostname, address) {
      const host = `${hostname}.`;
      await tell('clear-a', { host });
      await tell(address === null ? 'set-servfail' : 'clear-servfail', { host });
      if (address !== null) await tell('add-a', { host, addresses: [address] });
    },
    lookup: async (name) => (await resolver.resolve4(name)).map((address) => ({ address, family: 4 })),
    kill,
    start,
    async stop() {
      await kill();
      await names.kill();
      await agent.destroy();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function selfSigned() {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=pebble of a test',
    notBefore: new Date(Date.now() - 3600_000),
    notAfter: new Date(Date.now() + 24 * 3600_000),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }]),
    ],
  });
  const key = x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  return { certificate: certificate.toString('pem'), key };
}
