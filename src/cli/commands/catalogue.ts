// sluice catalogue …: builds, checks, serves and ships a catalogue, from its files alone; no service is needed. Verbs
// load what they need when they run: completion and help only read their declarations, and `node:http` alone brings a
// hundred modules along.

import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { CatalogueError, codeOf, SourcesFailedError } from '../../catalogue/catalogue-error.ts';
import { type ServerName, serverRules, servers } from '../../catalogue/header-rules.ts';
import type { Ffmpeg } from '../../catalogue/media/ffmpeg.ts';
import { parseS3Address, type S3Store, storeAt } from '../../lib/s3-address.ts';
import { S3Error } from '../../lib/s3-error.ts';
import { type Command, type CommandContext, type Explained, type Options, verb } from '../frame/command.ts';
import { interruption } from '../frame/parse.ts';
import { exit, type Io, UsageError } from '../io.ts';
import { createProgress, megabytes } from './catalogue-progress.ts';

const onSite = {
  dir: { type: 'string', value: 'DIR', about: 'the site (default: SLUICE_CATALOGUE_DIR, or data/catalogue)' },
} as const satisfies Options;

const siteOf = (context: CommandContext<'dir'>): string =>
  context.text('dir') ?? context.io.env.SLUICE_CATALOGUE_DIR ?? 'data/catalogue';

async function ffmpegOf({ env }: Io): Promise<Ffmpeg> {
  const { findFfmpeg } = await import('../../catalogue/media/ffmpeg.ts');
  return findFfmpeg(env.FFMPEG, env.PATH);
}

function wholeUpTo<O extends string>(context: CommandContext<O>, name: O, most: number): number | undefined {
  const text = context.text(name);
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text) && Number(text) <= most) return Number(text);
  throw new UsageError(`--${name} must be a whole number up to ${most}`);
}

/** A build can have many faults at once: each is a line that names the command, so that a log can be searched for it. */
function explainCatalogue(error: unknown, context: CommandContext | null): Explained {
  const { code, lines } = reasonOf(error, context?.signal.aborted ?? false);
  return { code, lines: lines.map((line) => `sluice catalogue: ${line}`) };
}

function reasonOf(error: unknown, interrupted: boolean): Explained {
  if (error instanceof UsageError)
    return { code: exit.usage, lines: [error.message.replace(/\.$/, ''), 'see: sluice catalogue --help'] };
  if (interrupted)
    return {
      code: exit.interrupted,
      lines: ['interrupted; the site is as it was, what is encoded is kept, and the next build goes on from there'],
    };
  if (error instanceof SourcesFailedError) return { code: SOME_FAILED, lines: error.lines };
  if (error instanceof CatalogueError) return { code: exit.failed, lines: error.lines };
  if (error instanceof S3Error) return { code: exit.failed, lines: [error.message] };
  if (['ENOSPC', 'EDQUOT'].includes(codeOf(error)))
    return { code: exit.failed, lines: ['the disk is full; what is published is whole, and the next build goes on'] };
  if (/^E[A-Z]+$/.test(codeOf(error))) return { code: exit.failed, lines: [(error as Error).message] };
  return { code: exit.failed, lines: [error instanceof Error ? (error.stack ?? error.message) : String(error)] };
}

/** Some sources failed, and all others are published. */
const SOME_FAILED = 3;

const buildVerb = verb({
  about: 'encode what is new and publish it',
  args: '[MANIFEST]',
  textOnly: true,
  options: {
    strict: { type: 'boolean', about: 'publish nothing if a source cannot be published (exit code 1)' },
    segmented: { type: 'boolean', about: 'HLS as one file for each segment, for caches that cannot keep ranges' },
    jobs: { type: 'string', value: 'N', about: 'sources encoded at the same time (default: half the cores)' },
    ...onSite,
  },
  async run(context) {
    const { sitePathsOf } = await import('../../catalogue/site-paths.ts');
    const { streamsIfUnchanged } = await import('../../catalogue/last-build.ts');
    const { io, out } = context;
    const [paths, manifestPath] = [sitePathsOf(siteOf(context)), context.args[0] ?? 'catalogue.yaml'];
    const unchanged = streamsIfUnchanged(paths, manifestPath);
    if (unchanged !== null) {
      out.line('nothing to encode');
      out.line(`${unchanged} streams in ${siteOf(context)} (${unchanged} as they were)`);
      return exit.done;
    }
    const { buildCatalogue, failureLines } = await import('../../catalogue/build.ts');
    const progress = createProgress(io.stdout);
    const jobs = Math.max(1, wholeUpTo(context, 'jobs', 64) ?? Math.floor(availableParallelism() / 2));
    let found: ReturnType<typeof ffmpegOf> | undefined;
    try {
      const { encoded, kept, failed, document } = await buildCatalogue({
        paths,
        manifestPath,
        ffmpeg: () => {
          found ??= ffmpegOf(io);
          return found;
        },
        now: () => new Date(io.now()),
        jobs,
        hlsLayout: context.flag('segmented') ? 'segments' : 'ranges',
        strict: context.flag('strict'),
        signal: context.signal,
        report: progress.report,
      });
      progress.end();
      if (encoded.length > 0) out.line(`published ${encoded.join(', ')}`);
      else if (failed.length === 0) out.line('nothing to encode');
      out.line(`${document.streams.length} streams in ${siteOf(context)} (${kept} as they were)`);
      for (const line of failureLines(failed)) io.stderr.write(`sluice catalogue: ${line}\n`);
      return failed.length === 0 ? exit.done : SOME_FAILED;
    } finally {
      progress.end();
    }
  },
});

const verifyVerb = verb({
  about: 'check everything a client relies on; exit code 1 if something is wrong',
  textOnly: true,
  options: { decode: { type: 'boolean', about: 'decode every file as well' }, ...onSite },
  async run(context) {
    const { sitePathsOf } = await import('../../catalogue/site-paths.ts');
    const { verifySite } = await import('../../catalogue/verify/verify-site.ts');
    const decoder = context.flag('decode') ? await ffmpegOf(context.io) : undefined;
    const paths = sitePathsOf(siteOf(context));
    const { notes, faults, files, bytes } = await verifySite({ paths, decoder, signal: context.signal });
    for (const note of notes) context.out.line(`note: ${note}`);
    for (const fault of faults) context.out.line(`fault: ${fault}`);
    const size = `${files} files, ${megabytes(bytes)}`;
    context.out.line(faults.length === 0 ? `${size}: all is well` : `${size}: ${faults.length} faults`);
    return faults.length === 0 ? exit.done : exit.failed;
  },
});

const withdrawVerb = verb({
  about: 'withdraw streams from the catalogue, permanently',
  args: 'ID…',
  missing: 'withdraw needs the id of a stream',
  textOnly: true,
  options: { purge: { type: 'boolean', about: 'also remove their files' }, ...onSite },
  async run(context) {
    const { sitePathsOf } = await import('../../catalogue/site-paths.ts');
    const { withdrawStream } = await import('../../catalogue/publish.ts');
    // With a listener in place Ctrl-C does not end the process: a withdrawal that began is finished.
    interruption();
    const purge = context.flag('purge');
    for (const id of context.args) {
      await withdrawStream({ paths: sitePathsOf(siteOf(context)), id, purge, now: () => new Date(context.io.now()) });
      context.out.line(`${id} is withdrawn${purge ? ', and its files are removed' : '; its files stay until --purge'}`);
    }
    return exit.done;
  },
});

const serveVerb = verb({
  about: 'serve the site over HTTP',
  args: '[DIR]',
  textOnly: true,
  options: {
    host: { type: 'string', value: 'H', about: 'the address to listen on (default: 127.0.0.1)' },
    port: { type: 'string', value: 'P', about: 'the port to listen on (default: 8080)' },
    ...onSite,
  },
  async run(context) {
    const { createServer } = await import('node:http');
    const { createOrigin } = await import('../../catalogue/origin.ts');
    const { readConfig } = await import('../../config.ts');
    const { trackConnections } = await import('../../lib/connections.ts');
    const { limitConnections } = await import('../../lib/connections.ts');
    const { cutOffStalledReaders } = await import('../../lib/connections.ts');
    const folder = resolve(context.args[0] ?? siteOf(context));
    const [host, port] = [context.text('host') ?? '127.0.0.1', wholeUpTo(context, 'port', 65_535) ?? 8080];
    const origin = createOrigin(folder);
    const server = createServer(origin.handle);
    const config = readConfig(context.io.env, false);
    limitConnections(config, config.trustedProxies, [server]);
    const connections = trackConnections(server);
    cutOffStalledReaders(server, config.stallTimeoutS * 1000);
    const { promise, resolve: ended, reject } = Promise.withResolvers<void>();
    server.on('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      context.out.line(`${folder} on http://${host}:${typeof address === 'object' ? address?.port : port}/`);
    });
    context.signal.addEventListener('abort', () => void connections.closeWhenIdle().then(ended));
    await promise;
    await origin.close();
    return exit.done;
  },
});

const headersVerb = verb({
  about: 'print the rules of the site for another web server',
  args: servers.join('|'),
  missing: `headers needs one of ${servers.join(', ')}`,
  textOnly: true,
  options: onSite,
  async run(context) {
    const server = context.args[0] as ServerName;
    if (!servers.includes(server)) throw new UsageError(`headers needs one of ${servers.join(', ')}`);
    context.io.stdout.write(serverRules(server, resolve(siteOf(context))));
    return exit.done;
  },
});

const addressForm = 'push needs an address of the form s3://bucket/prefix';

/** Credentials and defaults come from the variables that other S3 tools read too. */
function storeOf(context: CommandContext<'region' | 'endpoint'>): S3Store {
  const address = parseS3Address(context.args[0]!);
  if (address === null) throw new UsageError(addressForm);
  const store = storeAt(address, context.io.env);
  if (store === null) throw new UsageError('push needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  return {
    ...store,
    region: context.text('region') ?? store.region,
    endpoint: context.text('endpoint') ?? store.endpoint,
  };
}

const pushVerb = verb({
  about: 'copy the site to an object store',
  args: 's3://BUCKET/PREFIX',
  missing: addressForm,
  textOnly: true,
  options: {
    endpoint: { type: 'string', value: 'URL', about: 'an S3-compatible store (default: AWS_ENDPOINT_URL)' },
    region: { type: 'string', value: 'R', about: 'its region (default: AWS_REGION, or us-east-1)' },
    prune: { type: 'boolean', about: 'then remove media that the document no longer names' },
    ...onSite,
  },
  async run(context) {
    const store = storeOf(context);
    const { sitePathsOf } = await import('../../catalogue/site-paths.ts');
    const { pushSite } = await import('../../catalogue/push.ts');
    const progress = createProgress(context.io.stdout);
    const { sent, present, removed } = await pushSite({
      paths: sitePathsOf(siteOf(context)),
      store,
      prune: context.flag('prune'),
      signal: context.signal,
      report: (text) => progress.report({ kind: 'note', text }),
    });
    progress.end();
    context.out.line(`${sent} sent, ${present} already there, ${removed} removed`);
    return exit.done;
  },
});

export const catalogue: Command = {
  verbs: {
    build: buildVerb,
    verify: verifyVerb,
    withdraw: withdrawVerb,
    serve: serveVerb,
    push: pushVerb,
    headers: headersVerb,
  },
  helpWithoutVerb: true,
  unknownVerb: (word) => `there is no command ${word}`,
  explain: explainCatalogue,
  notes:
    'MANIFEST is catalogue.yaml by default; docs/catalogue.md says what is in it. Exit codes:\n0 done, 1 refused or faults found, 2 wrong usage, 3 some sources failed and the others are published, 130 interrupted.',
  examples: [
    'sluice catalogue build --dir site',
    'sluice catalogue verify --dir site --decode',
    'sluice catalogue withdraw harbour --purge',
    'sluice catalogue serve site --port 9000',
    'sluice catalogue push s3://bucket/prefix --prune',
    'sluice catalogue headers nginx --dir /srv/films',
  ],
};
