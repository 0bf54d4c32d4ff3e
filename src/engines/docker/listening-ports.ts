// What the program in a container listens on, read from the kernel: nothing is run inside the container. Only where the
// engine is on this machine, and its processes can be seen from here.
import { readFile } from 'node:fs/promises';
import type { ListeningPorts } from '../engine.ts';
import type { ContainerInspectInfo } from './docker-api.ts';

/** As the kernel writes it in /proc/net/tcp. */
const listenState = '0A';
/** 127.0.0.11, where Docker itself answers name lookups inside the container. */
const resolver = '0B00007F';

export class ListeningPrograms {
  /** Whether one of the engine's processes has been read from here. Then all that run can be. */
  #areVisible = false;

  get areVisible(): boolean {
    return this.#areVisible;
  }

  /** Null where it is not known. */
  async portsOf({ Id, State }: Pick<ContainerInspectInfo, 'Id' | 'State'>): Promise<ListeningPorts | null> {
    const ports = await readPorts(Id, State.Pid);
    this.#areVisible ||= ports !== null;
    if (ports || !State.Running || !this.#areVisible) return ports;
    // Its process has ended, and a busy engine has not noticed yet.
    return { open: [], loopback: [] };
  }
}

/** Null if the container has no such process, or it cannot be seen from here. */
async function readPorts(container: string, pid: number): Promise<ListeningPorts | null> {
  try {
    const process = `/proc/${pid}`;
    // A service that runs in a container itself sees other processes under these numbers.
    if (!(await readFile(`${process}/cgroup`, 'utf8')).includes(container)) return null;
    const tables = [await readFile(`${process}/net/tcp`, 'utf8'), await readFile(`${process}/net/tcp6`, 'utf8')];
    return portsIn(tables.join('\n'));
  } catch {
    return null;
  }
}

/** Reads lines such as `0: 0100007F:1F90 00000000:0000 0A …`. */
export function portsIn(table: string): ListeningPorts {
  const open = new Set<number>();
  const loopback = new Set<number>();
  for (const line of table.split('\n')) {
    const [, local = '', , state] = line.trim().split(/\s+/);
    const [address, port] = local.split(':');
    if (state !== listenState || address === undefined || port === undefined || address === resolver) continue;
    (isLoopback(address) ? loopback : open).add(Number.parseInt(port, 16));
  }
  return { open: sorted(open), loopback: sorted(loopback).filter((port) => !open.has(port)) };
}

/** 127.0.0.0/8, ::1, and the former within IPv6; the kernel writes words of four bytes in the machine's order. */
function isLoopback(address: string): boolean {
  if (address.length === 8) return address.endsWith('7F');
  return address === '00000000000000000000000001000000' || (/^0{16}FFFF0000/.test(address) && address.endsWith('7F'));
}

const sorted = (ports: Set<number>): number[] => [...ports].sort((a, b) => a - b);
