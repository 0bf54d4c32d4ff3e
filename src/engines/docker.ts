// Docker Engine API (or Podman's, which is compatible), over a socket or TCP.
import type { Engine } from './engine.ts';

export const defaultDockerSocket = '/var/run/docker.sock';
const probeTimeoutMs = 3000;

export async function createDockerEngine(address: string | null): Promise<Engine> {
  const { default: Docker } = await import('dockerode');
  const prober = new Docker({ ...connectionOf(address ?? defaultDockerSocket), timeout: probeTimeoutMs });
  return {
    kind: 'docker',
    async probe() {
      await prober.ping();
    },
    async close() {},
  };
}

export function connectionOf(
  address: string,
): { socketPath: string } | { host: string; port: number; protocol: 'http' } {
  if (!/^(tcp|http):\/\//.test(address)) return { socketPath: address.replace(/^unix:\/\//, '') };
  const { hostname, port } = new URL(address.replace(/^tcp:/, 'http:'));
  return { host: hostname, port: Number(port || 2375), protocol: 'http' };
}
