// Stacks of errors name the sources, also where the service runs from its bundle. Node can do so by itself, but then it
// reads every source map at the start: a third more memory, for what is needed when an error is logged.
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installDir } from './install.ts';

const bundle = import.meta.dirname;
const place = /file:\/\/[^\s()]+?\.js:\d+:\d+/;
/** Errors come in bursts; between them the memory of the maps is worth more than the time to read them again. */
const keepMs = 10_000;
const maps = new Map<string, SourceMap | null>();

function mapOf(file: string): SourceMap | null {
  if (maps.size === 0) setTimeout(() => maps.clear(), keepMs).unref();
  let map = maps.get(file);
  if (map === undefined) {
    try {
      map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')));
    } catch {
      map = null; // it was left out of the install, or there is no file left to open
    }
    maps.set(file, map);
  }
  return map;
}

/** `file:///…/dist/service-…/control.js:1:2` → `src/control.ts:3:4`. */
function sourcePlace(text: string): string {
  const [, url, line, column] = /^(.*):(\d+):(\d+)$/.exec(text)!;
  const file = fileURLToPath(url!);
  if (dirname(file) !== bundle) return text;
  const entry = mapOf(file)?.findEntry(Number(line) - 1, Number(column) - 1);
  if (!entry || !('originalSource' in entry)) return text;
  const source = relative(installDir, resolve(bundle, entry.originalSource));
  return `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
}

if (!import.meta.filename.endsWith('.ts')) {
  // Called when somebody reads the stack, not when the error is made.
  Error.prepareStackTrace = (error, sites) =>
    [String(error), ...sites.map((site) => `    at ${String(site).replace(place, sourcePlace)}`)].join('\n');
}
