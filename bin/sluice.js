#!/usr/bin/env node
// Runs the command line. Where node on the PATH is too old for it, the one that came with the install takes over.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundledNode, isNewEnough, oldestNode } from './node-version.js';

const words = process.argv.slice(2);

/** Then `sluice` alone shows how it is. */
function isProjectKnown() {
  if (process.env.SLUICE_PROJECT) return true;
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.sluice.json'))) return true;
    if (folder === dirname(folder)) return false;
  }
}

if ((words.length === 0 && !isProjectKnown()) || (words.length === 1 && ['--help', '-h', 'help'].includes(words[0]))) {
  // Printed from here: that loads nothing and starts no other Node.js.
  process.stdout.write(readFileSync(new URL('../src/cli/overview.txt', import.meta.url), 'utf8'));
} else if (isNewEnough(process.versions.node)) {
  const { runBundled } = await import('./bundle.js');
  await runBundled('cli');
} else {
  const node = bundledNode();
  if (node === null) {
    console.error(`sluice: Node.js ${oldestNode} or newer is needed, this is ${process.version}`);
    process.exit(1);
  }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...words], { stdio: 'inherit' });
  // On a terminal Ctrl-C reaches the child as well. Forwarding it would make it the second one, which ends the child at once.
  const onTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  process.on('SIGINT', () => onTerminal || child.kill('SIGINT'));
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}
