// For the time of a run, timers and chance of the whole program are those of the simulated process whose code runs in the
// step. The code under test is then exactly the code that is shipped, down to the libraries it uses.
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import type { Entry, World } from './world.ts';

interface Timer {
  entry: Entry;
  repeatMs: number | null;
}

/** Replaces them until the function it gives is called. */
export function replaceGlobals(world: World): () => void {
  const undo = [
    replace(globalThis as never, timersOf(world)),
    replace(Math as never, { random: () => (world.current?.random ?? world.random).next() }),
    replace(performance as never, { now: () => world.now }),
    replace(AbortSignal as never, {
      timeout(ms: number) {
        const controller = new AbortController();
        setTimeout(() => controller.abort(new DOMException('timed out', 'TimeoutError')), ms);
        return controller.signal;
      },
    }),
    replace(crypto as never, randomBytesOf(world)),
  ];
  syncBuiltinESMExports();
  return () => {
    for (const restore of undo.reverse()) restore();
    syncBuiltinESMExports();
  };
}

function replace(target: Record<string, unknown>, by: Record<string, unknown>): () => void {
  const before = Object.keys(by).map((name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const);
  for (const [name, value] of Object.entries(by)) {
    Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: true });
  }
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor) Object.defineProperty(target, name, descriptor);
      else delete target[name];
    }
  };
}

function timersOf(world: World) {
  const begin = (run: () => void, ms: number, repeatMs: number | null) => {
    const machine = world.current;
    const timer: Timer = { entry: world.after(machine, ms, 'timer', () => fire()), repeatMs };
    const fire = () => {
      if (timer.repeatMs !== null) timer.entry = world.after(machine, timer.repeatMs, 'timer', () => fire());
      run();
    };
    return handleOf(timer);
  };
  const clear = (handle: { timer?: Timer } | undefined | null) => {
    if (!handle?.timer) return;
    handle.timer.repeatMs = null;
    handle.timer.entry.canceled = true;
  };
  type Callback = (...args: unknown[]) => void;
  return {
    setTimeout: (run: Callback, ms = 0, ...args: unknown[]) => begin(() => run(...args), Math.max(1, ms), null),
    setInterval: (run: Callback, ms = 0, ...args: unknown[]) =>
      begin(() => run(...args), Math.max(1, ms), Math.max(1, ms)),
    setImmediate: (run: Callback, ...args: unknown[]) => begin(() => run(...args), 0, null),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  };
}

function handleOf(timer: Timer) {
  const handle = {
    timer,
    ref: () => handle,
    unref: () => handle,
    hasRef: () => true,
    [Symbol.dispose]: () => {
      timer.entry.canceled = true;
    },
  };
  return handle;
}

function randomBytesOf(world: World) {
  const fill = <T extends Uint8Array>(bytes: T): T => {
    (world.current?.random ?? world.random).fill(bytes);
    return bytes;
  };
  /** Without `high`, `low` is the bound, and 0 the least. */
  const randomInt = (low: number, high?: number) => {
    const { next } = world.current?.random ?? world.random;
    const [from, to] = high === undefined ? [0, low] : [low, high];
    return from + Math.floor(next() * (to - from));
  };
  return { randomBytes: (size: number) => fill(Buffer.alloc(size)), randomFillSync: fill, randomInt };
}
