// sluice backup, restore and upgrade. A backup is one encrypted file with all that cannot be made again: the database,
// which holds certificates and secrets sealed by the secret key; that key; the admin token; and the ledger of the
// catalogue. Its database is always SQLite, so that a backup of either database can be restored to either.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Config } from '../../config.ts';
import { StartError } from '../../lib/start-error.ts';
import { type Command, type CommandContext, verb } from '../frame/command.ts';
import { CliError, exit, UsageError } from '../io.ts';
import { prompt } from '../terminal/prompt.ts';

const databaseName = 'sluice.db';
const keyName = 'secret.key';
const tokenName = 'admin-token';
const ledgerName = 'ledger.jsonl';
const archivedNames = [databaseName, keyName, tokenName, ledgerName];

const shortestPassphrase = 12;

const passphraseOption = {
  'passphrase-file': { type: 'string', value: 'PATH', about: 'read the passphrase from this file' },
} as const;

type PassphraseContext = CommandContext<'passphrase-file'>;

async function passphraseOf(context: PassphraseContext, isNew: boolean): Promise<string> {
  const { io } = context;
  const path = context.text('passphrase-file');
  if (path === undefined && !io.stdin.isTTY) throw new UsageError('Not a terminal: pass --passphrase-file PATH.');
  const given = path === undefined ? await prompt(io, 'Passphrase (not shown): ', true) : readPassphrase(io.cwd, path);
  if (isNew && given.length < shortestPassphrase)
    throw new CliError(exit.usage, `A passphrase has ${shortestPassphrase} characters or more.`);
  if (isNew && path === undefined && (await prompt(io, 'The same again: ', true)) !== given)
    throw new CliError(exit.usage, 'These are two different ones. Nothing was done.');
  return given;
}

function readPassphrase(cwd: string, path: string): string {
  try {
    return readFileSync(resolve(cwd, path), 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

const sizeText = (bytes: number): string =>
  bytes < 1e6 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

async function settingsOf({ io }: Pick<CommandContext, 'io'>): Promise<Config> {
  const { readConfig } = await import('../../config.ts');
  return readConfig(io.env, false);
}

async function ledgerOf({ catalogueDir }: Config): Promise<string> {
  const { sitePathsOf } = await import('../../catalogue/site-paths.ts');
  return sitePathsOf(catalogueDir).ledger;
}

/** The key of the settings, in the form of the file; null: the file in the data directory is the key. */
const keyText = ({ secretKey }: Config): string | null =>
  secretKey === null ? null : `${secretKey.toString('base64')}\n`;

export const backup: Command = {
  verbs: {
    '': verb({
      about: 'write database, keys, certificates and the ledger of the catalogue into one encrypted file',
      args: 'FILE',
      options: passphraseOption,
      async run(context) {
        const config = await settingsOf(context);
        const path = resolve(context.io.cwd, context.args[0]!);
        if (existsSync(path)) throw new CliError(exit.usage, `${path} is there already.`, 'Choose another name.');
        const key = keyText(config);
        if (key === null && !existsSync(join(config.dataDir, keyName)))
          throw new CliError(
            exit.notFound,
            `No service has its data in ${config.dataDir}.`,
            'Set SLUICE_DATA_DIR, and what else the service is set to.',
          );
        const passphrase = await passphraseOf(context, true);
        const { writeArchive } = await import('../../lib/sealed-archive.ts');
        const staging = mkdtempSync(join(dirname(path), '.sluice-backup-'));
        try {
          await snapshot(config, staging, context.out.note);
          const own = (name: string, content: string) => writeFileSync(join(staging, name), content, { mode: 0o600 });
          own(keyName, key ?? readFileSync(join(config.dataDir, keyName), 'utf8'));
          const token = join(config.dataDir, tokenName);
          if (config.adminToken === null && existsSync(token)) own(tokenName, readFileSync(token, 'utf8'));
          const ledger = await ledgerOf(config);
          if (existsSync(ledger)) copyFileSync(ledger, join(staging, ledgerName));
          const names = archivedNames.filter((name) => existsSync(join(staging, name)));
          const whole = join(staging, 'backup');
          await writeArchive(
            whole,
            passphrase,
            names.map((name) => ({ name, path: join(staging, name) })),
          );
          renameSync(whole, path);
          const { size } = statSync(path);
          context.out.result({ path, bytes: size, files: names }, () => {
            context.out.line(`${path}  ${sizeText(size)}: ${names.join(', ')}`);
            context.out.note('Keep the passphrase elsewhere: without it nobody can read the file.');
          });
          return exit.done;
        } finally {
          rmSync(staging, { recursive: true, force: true });
        }
      },
    }),
  },
  notes:
    'Works while the service runs, with its settings in the environment. Not in it: media files, which their sources make\nagain, and the log lines of instances. The passphrase is asked for, or read from a file; it is never an argument.',
  examples: ['sluice backup sluice-monday.backup', 'sluice backup nightly.backup --passphrase-file /root/passphrase'],
};

/** The database as it is at one moment, as a SQLite file. */
async function snapshot(config: Config, staging: string, note: (text: string) => void): Promise<void> {
  if (config.databaseUrl === null) return vacuumInto(join(config.dataDir, databaseName), join(staging, databaseName));
  note('Copying from PostgreSQL…');
  const { copyDatabase } = await import('../../db/copy-database.ts');
  const { openDatabase } = await import('../../db/open-database.ts');
  const { migrate, requireVersion } = await import('../../db/migrate.ts');
  const own = { url: config.databaseDirectUrl ?? config.databaseUrl, dataDir: config.dataDir, unlimited: true };
  const from = await openDatabase({ ...own, onConnectionLost: () => {} });
  try {
    await requireVersion(from.db);
    const copy = join(staging, 'copy');
    mkdirSync(copy);
    const to = await openDatabase({ url: null, dataDir: copy, onConnectionLost: () => {} });
    try {
      await migrate(to.db, 'sqlite');
      await copyDatabase(from.db, to.db, 'postgres');
      // What has just been written may still be in the log beside the file.
      await vacuumInto(join(copy, databaseName), join(staging, databaseName));
    } finally {
      await to.close();
    }
  } finally {
    await from.close();
  }
}

async function vacuumInto(path: string, target: string): Promise<void> {
  const { DatabaseSync } = await import('node:sqlite');
  const database = new DatabaseSync(path);
  try {
    database.prepare('vacuum into ?').run(target);
  } finally {
    database.close();
  }
}

export const restore: Command = {
  verbs: {
    '': verb({
      about: 'restore a backup on a machine, or into a PostgreSQL, that has no service yet',
      args: 'FILE',
      options: passphraseOption,
      async run(context) {
        const config = await settingsOf(context);
        const path = resolve(context.io.cwd, context.args[0]!);
        if (!existsSync(path)) throw new CliError(exit.notFound, `There is no ${path}.`);
        for (const name of [databaseName, keyName, tokenName])
          if (existsSync(join(config.dataDir, name)))
            throw new CliError(
              exit.failed,
              `${config.dataDir} has a ${name} already.`,
              'A backup is restored where no service has been: set SLUICE_DATA_DIR to a new directory.',
            );
        const passphrase = await passphraseOf(context, false);
        const { ArchiveError, readArchive } = await import('../../lib/sealed-archive.ts');
        const { makeDataDir } = await import('../../data-dir.ts');
        const { lockDataDir } = await import('../../store.ts');
        makeDataDir(config.dataDir);
        const lock = lockDataDir(config.dataDir);
        const staging = mkdtempSync(join(config.dataDir, 'restore-'));
        try {
          const names = await readArchive(path, passphrase, staging, (name) => archivedNames.includes(name)).catch(
            (error) => {
              throw error instanceof ArchiveError
                ? new CliError(exit.failed, error.message, 'Nothing was changed.')
                : error;
            },
          );
          checkKey(config, staging);
          await place(config, staging, names);
          context.out.result({ path, data_dir: config.dataDir, files: names }, () => {
            context.out.line(
              `Restored to ${config.databaseUrl === null ? config.dataDir : 'PostgreSQL'}: ${names.join(', ')}`,
            );
            context.out.note('Start the service. The one that the backup is from must not run any more.');
          });
          return exit.done;
        } finally {
          rmSync(staging, { recursive: true, force: true });
          lock.release();
        }
      },
    }),
  },
  notes:
    'Give it the settings that the service will have: SLUICE_DATA_DIR, and SLUICE_DATABASE_URL for PostgreSQL, whatever the\nbackup is from. At its first start the service starts what its environments should run.',
  examples: ['sluice restore sluice-monday.backup', 'SLUICE_DATA_DIR=/srv/sluice sluice restore nightly.backup'],
};

/** A key in the settings has to be the one that sealed what is in the backup. */
function checkKey(config: Config, staging: string): void {
  const key = keyText(config);
  if (key !== null && key.trim() !== readFileSync(join(staging, keyName), 'utf8').trim())
    throw new StartError('SLUICE_SECRET_KEY is not the key of the backup. Leave it out: the backup has it.');
}

/** The database first, which may still be refused; what makes the directory a service's own comes last. */
async function place(config: Config, staging: string, names: string[]): Promise<void> {
  if (config.databaseUrl === null) renameSync(join(staging, databaseName), join(config.dataDir, databaseName));
  else await fillPostgres(config, staging);
  const ledger = await ledgerOf(config);
  if (names.includes(ledgerName) && !existsSync(ledger)) {
    mkdirSync(dirname(ledger), { recursive: true });
    copyFileSync(join(staging, ledgerName), ledger);
  }
  const settled = [tokenName, ...(config.secretKey === null ? [keyName] : [])];
  for (const name of settled) if (names.includes(name)) renameSync(join(staging, name), join(config.dataDir, name));
}

async function fillPostgres(config: Config, staging: string): Promise<void> {
  const { openStore } = await import('../../store.ts');
  const { copyDatabase } = await import('../../db/copy-database.ts');
  const key = Buffer.from(readFileSync(join(staging, keyName), 'utf8').trim(), 'base64');
  const ignore = () => {};
  const from = await openStore({ ...config, databaseUrl: null, dataDir: staging, secretKey: key }, ignore);
  try {
    const to = await openStore({ ...config, dataDir: staging, secretKey: key }, ignore);
    await copyDatabase(from.db, to.db).finally(() => to.close());
  } finally {
    await from.close();
  }
}

export const upgrade: Command = {
  verbs: {
    '': verb({
      about: 'say what an upgrade to the version on disk would do',
      options: { check: { type: 'boolean', about: 'only say it, which is all that it does' } },
      async run(context) {
        const { out, io } = context;
        const config = await settingsOf(context);
        const { version } = await import('../../version.ts');
        const { pendingMigrations } = await import('../../db/migrate.ts');
        const { openDatabase } = await import('../../db/open-database.ts');
        const isThere = config.databaseUrl !== null || existsSync(join(config.dataDir, databaseName));
        if (!isThere)
          throw new CliError(exit.notFound, `No service has its data in ${config.dataDir}.`, 'Set SLUICE_DATA_DIR.');
        const database = await openDatabase({
          url: config.databaseUrl,
          dataDir: config.dataDir,
          onConnectionLost: () => {},
        });
        const state = await pendingMigrations(database.db).finally(() => database.close());
        const found = { version, ...state };
        out.result(found, () => {
          out.line(`On disk is Sluice ${version}. The database is at version ${state.from} of ${state.to}.`);
          for (const name of state.pending) out.line(`  would migrate: ${name}`);
          const dir = io.env.SLUICE_DATA_DIR ? '' : ' (in the folder of the service)';
          out.note(
            state.from > state.to
              ? 'The database is newer: this version will not start on it.'
              : `Next: sluice backup ${basename(config.dataDir)}.backup, then sluice reload${dir}`,
          );
        });
        return state.from > state.to ? exit.failed : exit.done;
      },
    }),
  },
  notes:
    'Get the new version first: git pull && npm ci, or the new package or image. Nothing is asked of the network. Exit code 1:\nthe database has been migrated by a newer version.',
  examples: ['sluice upgrade --check'],
};
