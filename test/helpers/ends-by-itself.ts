// Preloaded into the process of every test file (scripts/test.ts). A file that is still running some time after its last
// test fails, and says what keeps it alive; with SLUICE_TEST_TRACE=1 also where that was created. To record this for every
// timer and socket costs files with many requests a tenth of their processor time, or more.
import { createHook } from 'node:async_hooks';
import { isMainThread } from 'node:worker_threads';

/** Enough for the hooks that run after the last test, on a busy machine. */
const graceMs = 30_000;

/** What can keep a process alive and is closed explicitly; requests end by themselves or hang on one of these. */
const kinds = new Set([
  'TCPSERVERWRAP',
  'TCPWRAP',
  'PIPESERVERWRAP',
  'PIPEWRAP',
  'UDPWRAP',
  'PROCESSWRAP',
  'FSEVENTWRAP',
  'STATWATCHER',
  'WORKER',
  'MESSAGEPORT',
  'SIGNALWRAP',
  'Timeout',
  'Immediate',
]);

interface Resource {
  hasRef?(): boolean;
  fd?: number;
  getsockname?(into: object): void;
  getpeername?(into: object): void;
  pid?: number;
  _idleTimeout?: number;
}

interface Created {
  kind: string;
  resource: Resource;
  at: Error;
}

function recordResources(): Map<number, Created> {
  const open = new Map<number, Created>();
  if (process.env.SLUICE_TEST_TRACE !== '1') return open;
  createHook({
    trackPromises: false,
    init(id, kind, _trigger, resource) {
      if (kinds.has(kind)) open.set(id, { kind, resource, at: deepStack() });
    },
    destroy: (id) => void open.delete(id),
  }).enable();
  return open;
}

/** Node's own frames come first and may fill a stack of the usual depth. */
function deepStack(): Error {
  const usual = Error.stackTraceLimit;
  Error.stackTraceLimit = 30;
  const error = new Error();
  Error.stackTraceLimit = usual;
  return error;
}

const isStandardStream = ({ fd }: Resource): boolean => fd !== undefined && fd >= 0 && fd <= 2;

function addressOf(read: ((into: object) => void) | undefined, resource: Resource): string | null {
  const found: { address?: string; port?: number } = {};
  read?.call(resource, found);
  return found.port === undefined ? null : `${found.address}:${found.port}`;
}

function describe({ kind, resource, at }: Created): string {
  const facts = [
    addressOf(resource.getsockname, resource),
    addressOf(resource.getpeername, resource),
    resource.pid !== undefined && `pid ${resource.pid}`,
    resource._idleTimeout !== undefined && `${resource._idleTimeout} ms`,
  ].filter(Boolean);
  const frames = (at.stack ?? '').split('\n').slice(1);
  const where = frames.filter((frame) => !frame.includes('node:') && !frame.includes(import.meta.filename));
  return [`${kind} ${facts.join(' ')}`.trim(), ...where].join('\n');
}

function fail(open: Map<number, Created>): never {
  const alive = [...open.values()].filter(
    ({ resource }) => !isStandardStream(resource) && (resource.hasRef?.() ?? true),
  );
  const lines = [
    `${process.argv[1]} still runs ${graceMs / 1000} s after its last test.`,
    `Active: ${process.getActiveResourcesInfo().join(', ')}`,
    ...(alive.length > 0 ? alive.map(describe) : ['SLUICE_TEST_TRACE=1 shows where that was created.']),
  ];
  process.stderr.write(`${lines.join('\n')}\n`);
  process.exit(1);
}

async function watchEnd(): Promise<void> {
  const open = recordResources();
  const { after, afterEach, beforeEach } = await import('node:test');
  // The hooks of the root: `after` runs when no test is left, and too early where a file awaits between two of its tests.
  let timer: NodeJS.Timeout | undefined;
  let ended = false;
  const arm = () => {
    clearTimeout(timer);
    timer = setTimeout(fail, graceMs, open).unref();
  };
  after(() => {
    ended = true;
    arm();
  });
  beforeEach(() => clearTimeout(timer));
  afterEach(() => {
    if (ended) arm();
  });
}

// Processes and threads that a test starts inherit the preload, but are not test files.
if (isMainThread && process.env.NODE_TEST_CONTEXT === 'child-v8') await watchEnd();
