// The stand-in: no container engine at all. It is what a machine without Docker gets, so that everything can be tried.
import type { Engine } from './engine.ts';

export function createStandinEngine(): Engine {
  return { kind: 'standin', async probe() {}, async close() {} };
}
