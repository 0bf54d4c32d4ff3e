// Which Node.js the service needs, and the one that comes with the install. Runs on old versions too.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

export const oldestNode = engines.node.replace('>=', '');

export function isNewEnough(version) {
  const [[major, minor], [oldestMajor, oldestMinor]] = [version, oldestNode].map((text) => text.split('.').map(Number));
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

/** null: none comes with the install for this kind of machine. */
export function bundledNode() {
  try {
    return createRequire(import.meta.url).resolve(`node-linux-${process.arch}/bin/node`);
  } catch {
    return null;
  }
}
