// What the verbs of `sluice catalogue` share: which site they work on, which ffmpeg they use, and how they report errors.
import { CatalogueError, codeOf } from '../../catalogue/fault.ts';
import { type Ffmpeg, findFfmpeg } from '../../catalogue/media/ffmpeg.ts';
import { S3Error } from '../../lib/s3.ts';
import type { CommandContext, Explained, Options } from '../frame/command.ts';
import { exit, type Io, UsageError } from '../io.ts';

export const onSite = {
  dir: { type: 'string', value: 'DIR', about: 'the site (default: SLUICE_CATALOGUE_DIR, or data/catalogue)' },
} as const satisfies Options;

export const siteOf = (context: CommandContext<'dir'>): string =>
  context.text('dir') ?? context.io.env.SLUICE_CATALOGUE_DIR ?? 'data/catalogue';

export const ffmpegOf = ({ env }: Io): Promise<Ffmpeg> => findFfmpeg(env.FFMPEG, env.PATH);

export function wholeUpTo<O extends string>(context: CommandContext<O>, name: O, most: number): number | undefined {
  const text = context.text(name);
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text) && Number(text) <= most) return Number(text);
  throw new UsageError(`--${name} must be a whole number up to ${most}`);
}

/** A build can have many faults at once: each is a line that names the command, so that a log can be searched for it. */
export function explainCatalogue(error: unknown, context: CommandContext | null): Explained {
  const { code, lines } = reasonOf(error, context?.signal.aborted ?? false);
  return { code, lines: lines.map((line) => `sluice catalogue: ${line}`) };
}

function reasonOf(error: unknown, interrupted: boolean): Explained {
  if (error instanceof UsageError)
    return { code: exit.usage, lines: [error.message.replace(/\.$/, ''), 'see: sluice catalogue --help'] };
  if (interrupted)
    return {
      code: exit.interrupted,
      lines: ['interrupted; the site is as it was, and the next build goes on from here'],
    };
  if (error instanceof CatalogueError) return { code: exit.failed, lines: error.lines };
  if (error instanceof S3Error) return { code: exit.failed, lines: [error.message] };
  if (['ENOSPC', 'EDQUOT'].includes(codeOf(error)))
    return { code: exit.failed, lines: ['the disk is full; what is published is whole, and the next build goes on'] };
  if (/^E[A-Z]+$/.test(codeOf(error))) return { code: exit.failed, lines: [(error as Error).message] };
  return { code: exit.failed, lines: [error instanceof Error ? (error.stack ?? error.message) : String(error)] };
}
