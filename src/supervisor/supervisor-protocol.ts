// What the supervisor and its children say to each other.
import type { Heartbeat } from '../lib/supervised.ts';

/** In SLUICE_CONTROL, as JSON: how a control process is to start. Its listening socket is file descriptor 3. */
export interface ControlSettings {
  /** The router runs in worker processes; null: not on this machine. */
  routerWorkers: { agentSocket: string; ports: { http: number; tls: number | null } } | null;
  /** For people: which data plane was chosen, and why. */
  routerLine: string | null;
  /** Whether to load everything, say `standby`, and wait for the order to start. */
  waits: boolean;
  /** Where it waits for the next supervisor if this one is killed. */
  supervisorSocket: string;
  /** Whether systemd keeps the sockets open when the service stops, so that clients may come back to the next one. */
  socketsOutlive: boolean;
}

/**
 * start → ready                      it was waiting, and serves now
 * greet                              it prints the lines for people
 * release → released                 it gives up the data directory and accepts no more; requests under way go on
 * retire → (ends)                    it releases if it has not yet, and ends once the requests under way have
 * resume, with a socket → resumed    its successor failed: it starts again, as the code it is
 */
export interface ControlOrder {
  order: 'start' | 'greet' | 'release' | 'retire' | 'resume';
}

/**
 * What a child of the supervisor reports: the answers to orders; every second that it is well, or what is wrong with it
 * (lib/supervised.ts); `failed` before it ends, with the reason.
 */
export interface ChildReport extends Heartbeat {
  standby?: true;
  ready?: true;
  released?: true;
  resumed?: true;
  failed?: string;
}
