// Stacks of errors name the sources, also where the service runs from its bundle. Node can do so by itself, but then it
// reads every source map at the start: a third more memory, for what is needed when an error is logged.
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SourceLines } from './source-lines.ts';

const bundle = import.meta.dirname;
const place = /file:\/\/[^\s()]+?\.js:\d+:\d+/;
const tables = new Map<string, SourceLines | null>();

function tableOf(file: string): SourceLines | null {
  let table = tables.get(file);
  if (table === undefined) {
    try {
      table = new SourceLines(readFileSync(`${file}.lines`));
    } catch {
      table = null; // it was left out of the install, or there is no file left to open
    }
    tables.set(file, table);
  }
  return table;
}

/** `file:///…/dist/service-…/control.js:1:2` → `src/control.ts:3`. */
function sourcePlace(text: string): string {
  const [, url, line, column] = /^(.*):(\d+):(\d+)$/.exec(text)!;
  const file = fileURLToPath(url!);
  if (dirname(file) !== bundle) return text;
  return tableOf(file)?.find(Number(line), Number(column)) ?? text;
}

if (!import.meta.filename.endsWith('.ts')) {
  // Called when somebody reads the stack, not when the error is made.
  Error.prepareStackTrace = (error, sites) =>
    [String(error), ...sites.map((site) => `    at ${String(site).replace(place, sourcePlace)}`)].join('\n');
}
