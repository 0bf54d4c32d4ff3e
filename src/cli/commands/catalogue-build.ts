// sluice catalogue build | verify | withdraw: the verbs that change or check a site. They load what they need when they
// run: completion and help only read their declarations.
import { availableParallelism } from 'node:os';
import { verb } from '../frame/command.ts';
import { interruption } from '../frame/interruption.ts';
import { exit } from '../io.ts';
import { createProgress, megabytes } from '../terminal/catalogue-progress.ts';
import { ffmpegOf, onSite, siteOf, wholeUpTo } from './catalogue-site.ts';

export const buildVerb = verb({
  about: 'encode what is new and publish it',
  args: '[MANIFEST]',
  textOnly: true,
  options: {
    segmented: { type: 'boolean', about: 'HLS as one file for each segment, for caches that cannot keep ranges' },
    jobs: { type: 'string', value: 'N', about: 'sources encoded at the same time (default: half the cores)' },
    ...onSite,
  },
  async run(context) {
    const { sitePathsOf } = await import('../../catalogue/site-paths.ts');
    const { streamsIfUnchanged } = await import('../../catalogue/verify/last-build.ts');
    const { io, out } = context;
    const [paths, manifestPath] = [sitePathsOf(siteOf(context)), context.args[0] ?? 'catalogue.yaml'];
    const unchanged = streamsIfUnchanged(paths, manifestPath);
    if (unchanged !== null) {
      out.line('nothing to encode');
      out.line(`${unchanged} streams in ${siteOf(context)} (${unchanged} as they were)`);
      return exit.done;
    }
    const { buildCatalogue } = await import('../../catalogue/build.ts');
    const progress = createProgress(io.stdout);
    const jobs = Math.max(1, wholeUpTo(context, 'jobs', 64) ?? Math.floor(availableParallelism() / 2));
    let found: ReturnType<typeof ffmpegOf> | undefined;
    try {
      const { encoded, kept, document } = await buildCatalogue({
        paths,
        manifestPath,
        ffmpeg: () => {
          found ??= ffmpegOf(io);
          return found;
        },
        now: () => new Date(io.now()),
        jobs,
        hlsLayout: context.flag('segmented') ? 'segments' : 'ranges',
        signal: context.signal,
        report: progress.report,
      });
      progress.end();
      out.line(encoded.length === 0 ? 'nothing to encode' : `published ${encoded.join(', ')}`);
      out.line(`${document.streams.length} streams in ${siteOf(context)} (${kept} as they were)`);
      return exit.done;
    } finally {
      progress.end();
    }
  },
});

export const verifyVerb = verb({
  about: 'check everything a client relies on; exit code 1 where something is wrong',
  textOnly: true,
  options: { decode: { type: 'boolean', about: 'decode every file as well' }, ...onSite },
  async run(context) {
    const { sitePathsOf } = await import('../../catalogue/site-paths.ts');
    const { verifySite } = await import('../../catalogue/verify/verify.ts');
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

export const withdrawVerb = verb({
  about: 'take streams out of the catalogue, for good',
  args: 'ID…',
  missing: 'withdraw needs the id of a stream',
  textOnly: true,
  options: { purge: { type: 'boolean', about: 'and remove their files' }, ...onSite },
  async run(context) {
    const { sitePathsOf } = await import('../../catalogue/site-paths.ts');
    const { withdrawStream } = await import('../../catalogue/withdraw.ts');
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
