#!/usr/bin/env node
// Runs the command line. Where node on the PATH is too old for it, the one that came with the install takes over.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
const [major, minor] = process.versions.node.split('.').map(Number);

if (major > 24 || (major === 24 && minor >= 12)) {
  const { enableCompileCache } = await import('node:module');
  enableCompileCache();
  await import(main);
} else {
  const child = spawn(bundledNode(), [main, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}

function bundledNode() {
  try {
    return createRequire(import.meta.url).resolve(`node-linux-${process.arch}/bin/node`);
  } catch {
    console.error(`sluice: Node.js 24.12 or newer is needed, this is ${process.version}`);
    process.exit(1);
  }
}
