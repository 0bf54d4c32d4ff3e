// sluice catalogue …: makes, checks, serves and ships a catalogue. The only place in the catalogue that reads the
// environment; everything below gets what it needs handed in.
import { createServer } from 'node:http';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildCatalogue } from '../../catalogue/build.ts';
import { CatalogueError, codeOf } from '../../catalogue/fault.ts';
import { findFfmpeg } from '../../catalogue/media/ffmpeg.ts';
import { createOrigin } from '../../catalogue/origin/origin.ts';
import { type ServerName, serverRules, servers } from '../../catalogue/origin/server-rules.ts';
import { placeOf } from '../../catalogue/place.ts';
import { pushSite } from '../../catalogue/push/push.ts';
import { verifySite } from '../../catalogue/verify/verify.ts';
import { withdrawStream } from '../../catalogue/withdraw.ts';
import type { Command as Described } from '../frame/command.ts';
import { createProgress, megabytes } from '../terminal/catalogue-progress.ts';

const help = `usage: sluice catalogue <command>

  build [catalogue.yaml]     encode what is new and publish it
      --segmented            HLS as one file for each segment (for caches that cannot keep ranges)
      --jobs N               sources encoded at the same time (default: half the cores)
  verify                     check everything a client relies on; exit code 1 where something is wrong
      --decode               decode every file as well
  withdraw ID…               take streams out of the catalogue, for good
      --purge                and remove their files
  serve [DIR]                serve the site over HTTP
      --host H --port P      default 127.0.0.1, 8080
  push s3://BUCKET/PREFIX    copy the site to an object store
      --endpoint URL         an S3-compatible store (default AWS_ENDPOINT_URL)
      --region R             default AWS_REGION or us-east-1
      --prune                then remove media that the document no longer names
  headers nginx|caddy        print the rules for that server

  --dir DIR                  the site (default SLUICE_CATALOGUE_DIR, or data/catalogue)
  --help

exit codes: 0 done, 1 refused or faults found, 2 wrong usage, 130 interrupted
`;

/** A command line that makes no sense; the text is shown with a hint at --help. */
class UsageError extends Error {}

const options = {
  dir: { type: 'string' },
  segmented: { type: 'boolean' },
  jobs: { type: 'string' },
  decode: { type: 'boolean' },
  purge: { type: 'boolean' },
  prune: { type: 'boolean' },
  host: { type: 'string' },
  port: { type: 'string' },
  endpoint: { type: 'string' },
  region: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>['values'];
type Command = (values: Values, args: string[], signal: AbortSignal) => Promise<number>;

/** Which options belong to which command, beside --dir and --help. */
const allowedOptions: Record<string, string[]> = {
  build: ['segmented', 'jobs'],
  verify: ['decode'],
  withdraw: ['purge'],
  serve: ['host', 'port'],
  push: ['endpoint', 'region', 'prune'],
  headers: [],
};

const say = (text: string) => process.stdout.write(`${text}\n`);
const siteOf = (values: Values) => values.dir ?? process.env.SLUICE_CATALOGUE_DIR ?? 'data/catalogue';
const placeFrom = (values: Values) => placeOf(siteOf(values));
const ffmpeg = () => findFfmpeg(process.env.FFMPEG, process.env.PATH);

function wholeNumber(text: string | undefined, name: string, fallback: number, most: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= most) return value;
  throw new UsageError(`--${name} must be a whole number up to ${most}`);
}

const commands: Record<string, Command> = {
  async build(values, [argument], signal) {
    const progress = createProgress(process.stdout);
    const jobs = Math.max(1, wholeNumber(values.jobs, 'jobs', Math.floor(availableParallelism() / 2), 64));
    let found: ReturnType<typeof ffmpeg> | undefined;
    try {
      const result = await buildCatalogue({
        place: placeFrom(values),
        manifestPath: argument ?? 'catalogue.yaml',
        ffmpeg: () => {
          found ??= ffmpeg();
          return found;
        },
        now: () => new Date(),
        jobs,
        hlsLayout: values.segmented ? 'segments' : 'ranges',
        signal,
        report: progress.report,
      });
      progress.end();
      const { encoded, kept, document } = result;
      say(encoded.length === 0 ? 'nothing to encode' : `published ${encoded.join(', ')}`);
      say(`${document.streams.length} streams in ${siteOf(values)} (${kept} as they were)`);
      return 0;
    } finally {
      progress.end();
    }
  },

  async verify(values, _args, signal) {
    const decoder = values.decode ? await ffmpeg() : undefined;
    const result = await verifySite({ place: placeFrom(values), decoder, signal });
    for (const note of result.notes) say(`note: ${note}`);
    for (const fault of result.faults) say(`fault: ${fault}`);
    const size = `${result.files} files, ${megabytes(result.bytes)}`;
    say(result.faults.length === 0 ? `${size}: all is well` : `${size}: ${result.faults.length} faults`);
    return result.faults.length === 0 ? 0 : 1;
  },

  async withdraw(values, ids) {
    if (ids.length === 0) throw new UsageError('withdraw needs the id of a stream');
    const purge = values.purge ?? false;
    for (const id of ids) {
      await withdrawStream({ place: placeFrom(values), id, purge, now: () => new Date() });
      say(`${id} is withdrawn${purge ? ', and its files are removed' : '; its files stay until --purge'}`);
    }
    return 0;
  },

  async serve(values, [argument], signal) {
    const folder = resolve(argument ?? siteOf(values));
    const origin = createOrigin(folder);
    const server = createServer(origin.handle);
    const [host, port] = [values.host ?? '127.0.0.1', wholeNumber(values.port, 'port', 8080, 65_535)];
    const { promise, resolve: ended, reject } = Promise.withResolvers<void>();
    server.on('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      say(`${folder} on http://${host}:${typeof address === 'object' ? address?.port : port}/`);
    });
    signal.addEventListener('abort', () => {
      server.close(() => ended());
      server.closeIdleConnections();
    });
    await promise;
    await origin.close();
    return 0;
  },

  async push(values, [argument], signal) {
    const target = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(argument ?? '');
    if (target === null) throw new UsageError('push needs an address of the form s3://bucket/prefix');
    const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_ENDPOINT_URL, AWS_REGION } = process.env;
    if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY)
      throw new UsageError('push needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
    const progress = createProgress(process.stdout);
    const result = await pushSite({
      place: placeFrom(values),
      store: {
        bucket: target[1]!,
        prefix: (target[2] ?? '').replace(/^\/+|\/+$/g, ''),
        region: values.region ?? AWS_REGION ?? 'us-east-1',
        endpoint: values.endpoint ?? AWS_ENDPOINT_URL,
        accessKeyId: AWS_ACCESS_KEY_ID,
        secretAccessKey: AWS_SECRET_ACCESS_KEY,
        sessionToken: AWS_SESSION_TOKEN,
      },
      prune: values.prune ?? false,
      signal,
      report: (text) => progress.report({ kind: 'note', text }),
    });
    progress.end();
    say(`${result.sent} sent, ${result.present} already there, ${result.removed} removed`);
    return 0;
  },

  async headers(values, [argument]) {
    if (!servers.includes(argument as ServerName)) throw new UsageError(`headers needs one of ${servers.join(', ')}`);
    process.stdout.write(serverRules(argument as ServerName, resolve(siteOf(values))));
    return 0;
  },
};

async function runCommand(args: string[], signal: AbortSignal): Promise<number> {
  let parsed: { values: Values; positionals: string[] };
  try {
    parsed = parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const [name, ...rest] = parsed.positionals;
  if (parsed.values.help || name === undefined) {
    process.stdout.write(help);
    return parsed.values.help ? 0 : 2;
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) throw new UsageError(`there is no command ${name}`);
  const most = { verify: 0, withdraw: 1000 }[name] ?? 1;
  if (rest.length > most) throw new UsageError(`${rest[most]} is one argument too many`);
  const foreign = Object.keys(parsed.values).find((key) => key !== 'dir' && !allowedOptions[name]!.includes(key));
  if (foreign !== undefined) throw new UsageError(`--${foreign} does not belong to ${name}`);
  return command(parsed.values, rest, signal);
}

/** What a person can mend is told in one line each; anything else is a defect and keeps its stack. */
function explain(error: unknown, signal: AbortSignal): { code: number; lines: string[] } {
  if (error instanceof UsageError) return { code: 2, lines: [error.message, 'see: sluice catalogue --help'] };
  if (signal.aborted)
    return { code: 130, lines: ['interrupted; the site is as it was, and the next build goes on from here'] };
  if (error instanceof CatalogueError) return { code: 1, lines: error.lines };
  if (codeOf(error) === 'ENOSPC') return { code: 1, lines: ['the disk is full; the site is as it was'] };
  if (/^E[A-Z]+$/.test(codeOf(error))) return { code: 1, lines: [(error as Error).message] };
  return { code: 1, lines: [error instanceof Error ? (error.stack ?? error.message) : String(error)] };
}

export async function run(args: string[]): Promise<number> {
  const abort = new AbortController();
  const stop = () => abort.abort();
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    return await runCommand(args, abort.signal);
  } catch (error) {
    const { code, lines } = explain(error, abort.signal);
    for (const line of lines) process.stderr.write(`sluice catalogue: ${line}\n`);
    return code;
  } finally {
    process.off('SIGINT', stop);
    process.off('SIGTERM', stop);
  }
}

/** It reads its words itself; this is what completion knows of them. */
export const command: Described = {
  passOn: run,
  verbs: Object.fromEntries(
    Object.entries(allowedOptions).map(([name, own]) => {
      const known = Object.entries(options).filter(([option]) => [...own, 'dir', 'help'].includes(option));
      const described = known.map(([option, { type }]) => [option, { type, about: '' }]);
      return [name, { about: '', args: '[…]', options: Object.fromEntries(described), run: async () => 0 }];
    }),
  ),
  examples: [],
};
