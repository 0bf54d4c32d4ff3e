// Ways to send an example: as it stands in the reference, by the program that a reader would use.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { createClient } from '../../src/client/index.ts';
import { routes } from '../../src/contract/api.ts';
import type { RouteDeclaration } from '../../src/contract/declare.ts';
import { curlOf, type ExampleRequest, isStream, pythonOf, typescriptOf } from '../../src/http/docs/snippets.ts';
import { adminToken } from '../helpers/app.ts';
import type { Send } from './example-walk.ts';

export interface Sender {
  /** Text that came back. */
  send(route: RouteDeclaration, request: ExampleRequest, meanwhile?: () => Promise<unknown>): Promise<unknown>;
  close(): Promise<void>;
}

/** Gives the requests to a sender, and each with what came back to `onSent`. */
export function sendWith(
  sender: Sender,
  onSent: (name: string, request: ExampleRequest, response: unknown) => void,
): Send {
  return async (name, { params = {}, query = {}, body } = {}, meanwhile) => {
    const route = routes.find((one) => one.name === name);
    if (!route) throw new Error(`no route ${name}`);
    const request = { params, query, ...(body !== undefined && { body }) };
    const response = await sender.send(route, request, meanwhile).catch((cause) => {
      throw new Error(`${name} ${JSON.stringify(request)}`, { cause });
    });
    onSent(name, request, response);
    return response;
  };
}

const parsed = (text: string): unknown => (text.startsWith('{') ? JSON.parse(text) : null);

/** What a program prints until it ends; of a stream, until something has come. */
async function printed(
  program: string,
  args: string[],
  env: Record<string, string>,
  stopEarly: boolean,
  meanwhile?: () => Promise<unknown>,
): Promise<string> {
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let text = '';
  let complaint = '';
  let isOver = false;
  const hasEnough = () => /^data: .+\n\n/m.test(text);
  const stop = () => {
    isOver = true;
    process.kill(-child.pid!, 'SIGKILL');
  };
  child.stdout.on('data', (chunk) => {
    text += chunk;
    if (stopEarly && !isOver && hasEnough()) stop();
  });
  child.stderr.on('data', (chunk) => {
    complaint += chunk;
  });
  const closed = once(child, 'close');
  const repeat = setInterval(() => void (isOver || meanwhile?.()), 300);
  const [code] = await closed;
  clearInterval(repeat);
  if (code !== 0 && !isOver) throw new Error(`${args.at(-1)}\n${text}\n${complaint}`);
  return stopEarly ? `${text.split('\n\n').find((part) => part.includes('data: '))}\n\n` : text;
}

export function curlSender(url: string): Sender {
  // curl reads it: the examples need not ask for the failure of a refused request.
  const home = mkdtempSync(join(tmpdir(), 'sluice-curl-'));
  writeFileSync(join(home, '.curlrc'), 'fail-with-body\n');
  return {
    async send(route, request, meanwhile) {
      const env = { HOME: home, SLUICE_TOKEN: adminToken };
      const text = await printed('bash', ['-c', curlOf(route, request, url)], env, isStream(route), meanwhile);
      return isStream(route) ? text : parsed(text);
    },
    async close() {
      rmSync(home, { recursive: true, force: true });
    },
  };
}

export function typescriptSender(url: string): Sender {
  const sluice = createClient({ url, token: adminToken });
  const enough = new Error('enough');
  type Run = (client: typeof sluice, console: object) => Promise<void>;
  const AsyncFunction = (async () => {}).constructor as new (...texts: string[]) => Run;
  return {
    async send(route, request, meanwhile) {
      let values: unknown[] = [];
      const log = (...given: unknown[]) => {
        values = given;
        if (isStream(route)) throw enough;
      };
      const repeat = setInterval(() => void meanwhile?.(), 300);
      await new AsyncFunction('sluice', 'console', typescriptOf(route, request))(sluice, { log })
        .catch((error) => {
          if (error !== enough) throw error;
        })
        .finally(() => clearInterval(repeat));
      return values.length === 2 ? { data: values[0], page: values[1] } : (values[0] ?? null);
    },
    async close() {},
  };
}

const pythonLoop = `
import contextlib, io, json, sys, traceback
for line in sys.stdin:
    printed, failure = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(printed):
            exec(json.loads(line), {})
    except BaseException:
        failure = traceback.format_exc()
    print(json.dumps([printed.getvalue(), failure]), flush=True)
`;

/** One Python for all but the streams, which are ended by ending it. */
export function pythonSender(url: string): Sender {
  const env = { SLUICE_TOKEN: adminToken };
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn('python3', ['-c', pythonLoop], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async send(route, request, meanwhile) {
      const program = pythonOf(route, request, url);
      if (isStream(route)) return printed('python3', ['-u', '-c', program], env, true, meanwhile);
      child.stdin.write(`${JSON.stringify(program)}\n`);
      const { value } = (await lines.next()) as { value: string };
      const [text, failure] = JSON.parse(value) as [string, string | null];
      if (failure !== null) throw new Error(`${program}\n${failure}`);
      return parsed(text);
    },
    async close() {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}
