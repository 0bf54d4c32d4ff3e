// What a test runs as a process of its own is loaded as the tests are: the service from its bundle, and what tests add to it
// with the bundle of all modules where there is one.
import { join } from 'node:path';
import { installDir } from '../../src/lib/install.ts';

/** An entry of the service (src/lib/install.ts), which `npm test` bundles first. */
export const bundledEntry = (name: 'router-worker' | 'standin'): string => join(installDir, `dist/service/${name}.js`);

const modules = process.env.SLUICE_TEST_MODULES;

/** For Node.js, before the file of the test. */
export const ownProcessArgs: string[] = modules ? ['--import', join(import.meta.dirname, 'bundled-modules.ts')] : [];

export const ownProcessEnv: Record<string, string> = modules ? { SLUICE_TEST_MODULES: modules } : {};
