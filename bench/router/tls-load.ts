// Load over TLS from wrk, which sends the name of the address along and resumes no sessions.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

interface TlsLoad {
  url: string;
  connections: number;
  seconds: number;
  /** A connection, and so a handshake, for each request. */
  handshakes: boolean;
}

/** Successful requests a second. An answer that is not 2xx makes the measurement void. */
export async function tlsRequestsPerSecond({ url, connections, seconds, handshakes }: TlsLoad): Promise<number> {
  const closing = handshakes ? ['-H', 'Connection: close'] : [];
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, ...closing, url];
  const { stdout } = await promisify(execFile)('wrk', args);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`not every request succeeded:\n${stdout}`);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)![1]);
}
