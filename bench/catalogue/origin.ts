// The origin beside a bare node:http (what Node can do at all) and nginx (what a machine can do).

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { collectCleanup } from '../../test/catalogue/fixture.ts';
import { startNginx } from '../../test/catalogue/servers.ts';
import { note } from '../lib/report.ts';
import { inTurns, judge, type Load, requestsPerSecond } from './in-turns.ts';

type Cleanup = ReturnType<typeof collectCleanup>;

async function startBare(cleanup: Cleanup, kind: 'origin' | 'memory' | 'stream', site: string): Promise<string> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'server.ts'), kind, site], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanup.after(() => child.kill());
  const port = await new Promise<string>((resolve) =>
    child.stdout.once('data', (text: Buffer) => resolve(text.toString().trim())),
  );
  return `http://127.0.0.1:${port}`;
}

const times = (ratio: number) => ratio.toFixed(2);

export async function benchOrigin(cleanup: Cleanup, site: string, film: string, seconds: number): Promise<void> {
  const origin = await startBare(cleanup, 'origin', site);
  const memory = await startBare(cleanup, 'memory', site);
  const stream = await startBare(cleanup, 'stream', site);
  const nginx = await startNginx(cleanup, site);
  const load = (base: string, path: string, connections: number, headers: Load['headers']) => () =>
    requestsPerSecond({ url: base + path, seconds, connections, ...(headers && { headers }) });

  const br = { 'accept-encoding': 'br' };
  const gzip = { 'accept-encoding': 'gzip' };
  const document = '/api/streams.json';
  const whole = await inTurns(7, {
    origin: load(origin, document, 32, br),
    bare: load(memory, document, 32, br),
    nginx: load(nginx, document, 32, gzip),
  });
  const share = whole.ratio('origin', 'bare');
  const rate = (value: number) => `${Math.round(value)} a second`;
  judge('`streams.json` / bare `node:http`', times(share), '≥ 0.80', share >= 0.8, rate(whole.of.origin));
  note('`streams.json` / nginx with gzip', times(whole.ratio('origin', 'nginx')), `nginx ${rate(whole.of.nginx)}`);

  const tagOf = async (base: string, headers: Record<string, string>) =>
    (await fetch(base + document, { headers })).headers.get('etag')!;
  const [ourTag, nginxTag] = await Promise.all([tagOf(origin, br), tagOf(nginx, gzip)]);
  const fresh = await inTurns(5, {
    origin: load(origin, document, 32, { ...br, 'if-none-match': ourTag }),
    nginx: load(nginx, document, 32, { ...gzip, 'if-none-match': nginxTag }),
  });
  const fast = fresh.ratio('origin', 'nginx');
  note('`streams.json`, conditional (304) / nginx', times(fast), rate(fresh.of.origin));

  const range = { range: 'bytes=1048576-2097151' };
  const ranges = await inTurns(5, {
    origin: load(origin, film, 8, range),
    bare: load(stream, film, 8, range),
    nginx: load(nginx, film, 8, range),
  });
  const part = ranges.ratio('origin', 'bare');
  const speed = (value: number) => `${Math.round(value)} MB/s`;
  judge('1 MB ranges / bare file stream', times(part), '≥ 0.90', part >= 0.9, speed(ranges.of.origin));
  const rangesOfNginx = `nginx ${speed(ranges.of.nginx)}`;
  note('1 MB ranges / nginx with sendfile', times(ranges.ratio('origin', 'nginx')), rangesOfNginx);

  const files = await inTurns(5, {
    origin: load(origin, film, 4, {}),
    bare: load(stream, film, 4, {}),
    nginx: load(nginx, film, 4, {}),
  });
  const all = files.ratio('origin', 'bare');
  note('whole files of 32 MB / bare file stream', times(all), speed(files.of.origin * 32));
  const filesOfNginx = `nginx ${speed(files.of.nginx * 32)}`;
  note('whole files of 32 MB / nginx with sendfile', times(files.ratio('origin', 'nginx')), filesOfNginx);
}
