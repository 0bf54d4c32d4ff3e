// Talks to a running HAProxy over its unix sockets: commands that change it, and the log it keeps in memory.
import { connect, type Socket } from 'node:net';
import { StringDecoder } from 'node:string_decoder';

const answerMs = 5000;

export class HaproxyRefused extends Error {
  constructor(command: string, answer: string) {
    // The payload of a command may be a private key.
    super(`HAProxy refused "${command.split('\n', 1)[0]}": ${answer.trim()}`);
  }
}

/** Sends one command, which may have a payload, and gives the whole answer. */
export function ask(socketPath: string, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(socketPath);
    socket.setEncoding('utf8');
    socket.setTimeout(answerMs, () => socket.destroy(new Error('HAProxy does not answer')));
    socket.on('connect', () => socket.end(`${command}\n`));
    socket.on('data', (text) => {
      answer += text;
    });
    socket.on('error', reject);
    socket.on('close', (failed) => {
      if (!failed) resolve(answer);
    });
  });
}

/** Commands that answer nothing where they did what they should. */
export async function runCommands(socketPath: string, commands: readonly string[]): Promise<void> {
  const perLine = 40; // a line of HAProxy's has to fit its buffer
  for (let i = 0; i < commands.length; i += perLine) {
    const line = commands.slice(i, i + perLine).join('; ');
    const answer = (await ask(socketPath, line)).trim();
    const complaint = answer.split('\n').find((text) => text.trim() !== '' && !isPlainSuccess(text));
    if (complaint) throw new HaproxyRefused(line, complaint);
  }
}

const isPlainSuccess = (text: string): boolean => /^(New server registered\.|Server deleted\.)$/.test(text.trim());

/**
 * How long what arrives is left to gather before it is read. HAProxy sends each line as it comes, until its socket is full;
 * reading every one costs both sides more than the line itself does.
 */
const gatherMs = 50;
/** A backlog is read without waiting: it comes in pieces as large as HAProxy's buffer. */
const backlogBytes = 16 * 1024;
const readAtOnce = 256 * 1024;

/** Follows output that does not end, line by line. The first line after a silence comes at once. */
export function follow(
  socketPath: string,
  command: string,
  onLine: (line: string) => void,
  onEnd: () => void,
): { close(): void } {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let gathering: NodeJS.Timeout | undefined;
  const callback = (bytes: number, chunk: Uint8Array): boolean => {
    const lines = (rest + decoder.write(chunk.subarray(0, bytes) as Buffer)).split('\n');
    rest = lines.pop()!;
    for (const line of lines) onLine(line);
    if (bytes >= backlogBytes) return true;
    gathering = setTimeout(() => socket.resume(), gatherMs);
    return false;
  };
  const socket: Socket = connect({ path: socketPath, onread: { buffer: Buffer.allocUnsafe(readAtOnce), callback } });
  socket.on('connect', () => socket.write(`${command}\n`));
  socket.on('error', () => {});
  socket.on('close', () => {
    clearTimeout(gathering);
    onEnd();
  });
  return { close: () => socket.destroy() };
}
