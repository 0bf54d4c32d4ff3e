// The first thing an install does, run by the Node.js that runs npm: makes `node` in npm scripts the one that comes with
// the install, or says in one line what keeps that from starting here. It runs as `preprepare`: with a script `prepare` npm warns
// of every install of the packed package, in which it never runs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundledNode, isNewEnough, oldestNode } from './node-version.js';

function fail(why) {
  process.stderr.write(`\nsluice: ${why}\n\n`);
  process.exit(1);
}

const root = fileURLToPath(new URL('..', import.meta.url));
if (!existsSync(join(root, 'node_modules/rolldown')))
  fail('a checkout is built on install, which takes the development packages too: npm ci --include=dev');

const node = bundledNode();
if (node === null) {
  const here = `${process.platform} on ${process.arch}`;
  if (!isNewEnough(process.versions.node))
    fail(`Node.js ${oldestNode} or newer is needed for ${here}, this is ${process.version}`);
} else {
  const { error, status, stderr } = spawnSync(node, ['--version'], { encoding: 'utf8' });
  if (error || status !== 0) {
    const library = /loading shared libraries: ([^:\s]+)/.exec(stderr ?? '')?.[1];
    const packages = { 'libatomic.so.1': 'libatomic1', 'libstdc++.so.6': 'libstdc++6', 'libgcc_s.so.1': 'libgcc-s1' };
    const remedy = packages[library] ? `. As root: apt-get install -y ${packages[library]}` : '';
    const reason = library ? `${library} is missing${remedy}` : (stderr?.trim() || String(error)).split('\n')[0];
    fail(`the Node.js that comes with the install does not start here: ${reason}`);
  }
  // npm 10 removes it with the package for the other architecture, which has a link of the same name.
  const link = join(dirname(node), '../../.bin/node');
  if (!existsSync(link)) {
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(relative(dirname(link), node), link);
  }
}
