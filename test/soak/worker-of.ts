// Which process holds the other end of a connection, as the system knows it.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const portOf = (address: string): number => Number.parseInt(address.split(':')[1]!, 16);

/** null: none of them, or not accepted yet. */
export function workerOf(serverPort: number, clientPort: number, workers: number[]): number | null {
  const inode = inodeOf(serverPort, clientPort);
  return inode === null ? null : (workers.find((pid) => holds(pid, inode)) ?? null);
}

function inodeOf(localPort: number, remotePort: number): string | null {
  for (const line of readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)) {
    const fields = line.trim().split(/\s+/);
    if (fields.length < 10 || portOf(fields[1]!) !== localPort || portOf(fields[2]!) !== remotePort) continue;
    return fields[9]!;
  }
  return null;
}

function holds(pid: number, inode: string): boolean {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((fd) => linkOf(`${folder}/${fd}`) === `socket:[${inode}]`);
  } catch {
    return false;
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
