// The cluster that `npm run test:kubernetes` works on: any whose pods this machine reaches, with a registry that both reach.
// Everything that a test makes has an installation of its own and is removed with it; nothing else is touched.
import { isIP } from 'node:net';
import type { Engine } from '../../src/engines/engine.ts';
import { type ClusterAccess, readKubeconfig } from '../../src/engines/kubernetes/cluster-access.ts';
import { connectKubernetes, isStatus, type KubeClient } from '../../src/engines/kubernetes/kube-client.ts';
import type { KubeObject, ObjectList } from '../../src/engines/kubernetes/kube-objects.ts';
import { createKubernetesEngine, type KubernetesOptions } from '../../src/engines/kubernetes/kubernetes.ts';
import { createRegistry } from '../../src/engines/registry/registry.ts';
import { type Cuttable, openCuttable } from '../helpers/cuttable.ts';
import type { ImageKind } from '../helpers/images.ts';
import { type PushTarget, pushProgram } from '../helpers/push.ts';

function required(name: string): string {
  return process.env[name] || raise(`${name} is not set: see docs/testing.md`);
}

const raise = (message: string): never => {
  throw new Error(message);
};

export const kubeconfig = required('SLUICE_TEST_KUBECONFIG');
/** `host:port`, as images are named. */
export const registry: PushTarget = { host: required('SLUICE_TEST_REGISTRY') };
export const namespacePrefix = `sluice-test-${process.pid}-`;

export const access: ClusterAccess = readKubeconfig(kubeconfig, { context: null, allowExec: true });
export const cluster: KubeClient = connectKubernetes(access);

const openEngine = (installation: string, more: Partial<KubernetesOptions> = {}): Engine =>
  createKubernetesEngine({
    access,
    installation,
    namespaces: { kind: 'per-project', prefix: namespacePrefix },
    routers: [],
    registry: createRegistry(),
    ...more,
  });

export { openEngine };

/** A way to the cluster that can be cut. */
export async function cuttableAccess(): Promise<Cuttable & { access: ClusterAccess }> {
  const { hostname, port } = new URL(access.server);
  const path = await openCuttable({ host: hostname, port: Number(port || 443) });
  // A name that the certificate of every API server has; an address cannot be asked for.
  const serverName = access.serverName ?? (isIP(hostname) ? 'kubernetes.default.svc' : hostname);
  return { ...path, access: { ...access, server: `https://127.0.0.1:${path.port}`, serverName } };
}

const pushed = new Map<string, Promise<string>>();

/** The reference of an image of this kind, pushed once. */
export function imageOf(kind: ImageKind, more: { tag?: string; user?: string; image?: string } = {}): Promise<string> {
  const key = JSON.stringify([kind, more]);
  const reference = pushed.get(key) ?? pushProgram(registry, kind, { image: `sluice-test-${kind}`, ...more });
  pushed.set(key, reference);
  return reference;
}

export const list = async <T extends KubeObject>(path: string, labelSelector = ''): Promise<T[]> =>
  (await cluster.request<ObjectList<T>>({ path, query: { labelSelector } })).items;

export async function remove(path: string, body: object = {}): Promise<void> {
  try {
    await cluster.request({ method: 'DELETE', path, body });
  } catch (error) {
    if (!isStatus(error, 404, 409)) throw error;
  }
}

/** Call it once per file: removes the namespaces of this process, and closes the connection. */
export async function cleanUp(): Promise<void> {
  for (const { metadata } of await list('/api/v1/namespaces')) {
    if (metadata.name.startsWith(namespacePrefix)) await remove(`/api/v1/namespaces/${metadata.name}`);
  }
  await cluster.close();
}
