// Where HAProxy's files lie. They are written before HAProxy is told of a change, so that it comes back with them
// whenever it starts by itself.
import { dirname, join } from 'node:path';
import { agentSocketPath } from '../worker/socket-path.ts';

export interface HaproxyFiles {
  folder: string;
  config: string;
  /** A file per backend. */
  backends: string;
  routes: string;
  challengeSocket: string;
  ticketKeys: string;
  /** Of the routing table that it has in force. */
  version: string;
  certificates: string;
  certificateList: string;
  adminSocket: string;
  masterSocket: string;
  pid: string;
  /** Of the configuration with which it runs. */
  hash: string;
}

/** `sockets`: a folder whose path is short enough for unix sockets (107 bytes). */
export const haproxyFiles = (folder: string, sockets: string): HaproxyFiles => ({
  folder,
  config: join(folder, 'haproxy.cfg'),
  backends: join(folder, 'backends'),
  routes: join(folder, 'routes.map'),
  challengeSocket: join(sockets, 'challenges.sock'),
  ticketKeys: join(folder, 'ticket-keys'),
  version: join(folder, 'version'),
  certificates: join(folder, 'certificates'),
  certificateList: join(folder, 'certificates.list'),
  adminSocket: join(sockets, 'haproxy.sock'),
  masterSocket: join(sockets, 'haproxy-master.sock'),
  pid: join(folder, 'haproxy.pid'),
  hash: join(folder, 'config.hash'),
});

export const haproxyFilesOf = (dataDir: string): HaproxyFiles =>
  haproxyFiles(join(dataDir, 'routing', 'haproxy'), dirname(agentSocketPath(dataDir)));
