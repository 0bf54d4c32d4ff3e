// Load over TLS by wrk, which takes the server name from the URL and resumes no sessions.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

interface TlsLoad {
  url: string;
  connections: number;
  seconds: number;
  /** Each request has its own connection, and so its own handshake. */
  handshakes: boolean;
}

/** Requests a second. Throws where a response is not 2xx. */
export async function tlsRequestsPerSecond({ url, connections, seconds, handshakes }: TlsLoad): Promise<number> {
  const closing = handshakes ? ['-H', 'Connection: close'] : [];
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, ...closing, url];
  const { stdout } = await promisify(execFile)('wrk', args);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`not every request succeeded:\n${stdout}`);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)![1]);
}
