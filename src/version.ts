import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installDir } from './lib/install.ts';

const manifest = JSON.parse(readFileSync(join(installDir, 'package.json'), 'utf8'));

export const version: string = manifest.version;

/** The oldest Node.js that the service runs on. */
export const oldestNode: string = manifest.engines.node.replace('>=', '');
