// An ffmpeg for tests that are not about encoding: it runs Debian's once for the same arguments on the same bytes, keeps
// what that wrote and said, and gives the same again. Debian's takes 0.1 s of processor time to load its libraries, several
// times what a second of film takes to encode. What is kept lies beside the durations of tests, is named by the program's
// version too, and goes two weeks after its last use. A run that fails is not kept.
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Ffmpeg, findFfmpeg } from '../../src/catalogue/media/ffmpeg.ts';

const store = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sluice', 'encodes');
const KEPT_MS = 14 * 24 * 3600 * 1000;

/**
 * Only a run that reads nothing but the open source (file descriptor 3) and writes below its folder can be kept; of those
 * without a source only questions for the version and the filters. setpriv: who is killed takes its ffmpeg along.
 */
const scriptFor = (real: string, identity: string) => `#!/bin/sh
store='${store}'
case "$*" in
  '-hide_banner -version' | '-hide_banner -filters') ;;
  *) [ -e /proc/self/fd/3 ] || exec '${real}' "$@" ;;
esac
key=$({ printf '%s\\0' '${identity}' "$@"; cat /proc/self/fd/3 2>/dev/null; } | sha256sum)
kept="$store/\${key%% *}"
if [ ! -e "$kept/stdout" ]; then
  new=$(mktemp -d "$store/new-XXXXXX") || exec '${real}' "$@"
  mkdir -p "$new/files/hls"
  (cd "$new/files" && exec setpriv --pdeathsig KILL '${real}' "$@") >"$new/stdout" 2>"$new/stderr"
  code=$?
  if [ $code -ne 0 ]; then
    cat "$new/stderr" >&2
    rm -rf "$new"
    exit $code
  fi
  rmdir "$new/files/hls" 2>/dev/null
  mv -T "$new" "$kept" 2>/dev/null || rm -rf "$new"
else
  touch "$kept"
fi
cp -R "$kept/files/." . && cat "$kept/stderr" >&2 && exec cat "$kept/stdout"
`;

function forgetUnused(): void {
  for (const name of readdirSync(store)) {
    const facts = statSync(join(store, name), { throwIfNoEntry: false });
    if (facts !== undefined && facts.mtimeMs < Date.now() - KEPT_MS)
      rmSync(join(store, name), { recursive: true, force: true });
  }
}

async function prepare(): Promise<Ffmpeg> {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const real = folders.map((folder) => join(folder, 'ffmpeg')).find((path) => existsSync(path));
  if (real === undefined) throw new Error('the tests of the catalogue need ffmpeg: apt-get install -y ffmpeg');
  mkdirSync(store, { recursive: true });
  forgetUnused();
  const { size, mtimeMs } = statSync(real);
  const script = scriptFor(real, `${real} ${size} ${mtimeMs}`);
  const path = join(store, `ffmpeg-${digestOf(script)}`);
  const aside = `${path}.${process.pid}`;
  writeFileSync(aside, script, { mode: 0o755 });
  renameSync(aside, path);
  return findFfmpeg(path, undefined);
}

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32);

/** A file that is made of nothing but these words, of which the last is its ending; gives its bytes. */
export async function rememberedFile(words: string[], make: (path: string) => Promise<unknown>): Promise<Buffer> {
  const { version } = await rememberedFfmpeg();
  const path = join(store, `file-${digestOf(JSON.stringify([version, ...words]))}`);
  const kept = await readFile(path).catch(() => null);
  const now = new Date();
  if (kept !== null) {
    utimesSync(path, now, now);
    return kept;
  }
  const aside = mkdtempSync(join(store, 'new-'));
  try {
    const name = join(aside, `made${words.at(-1)}`);
    await make(name);
    const bytes = await readFile(name);
    renameSync(name, path);
    return bytes;
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

let prepared: Promise<Ffmpeg> | undefined;

export function rememberedFfmpeg(): Promise<Ffmpeg> {
  prepared ??= prepare();
  return prepared;
}
