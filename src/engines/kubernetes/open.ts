// Opens the cluster that a region's setting names.
import type { Log } from '../../lib/log.ts';
import { StartError } from '../../lib/start-error.ts';
import type { Engine } from '../engine.ts';
import type { Mirrors } from '../registry/endpoints.ts';
import { createRegistry } from '../registry/registry.ts';
import { AccessError, type ClusterAccess } from './api/access.ts';
import { readInCluster } from './api/in-cluster.ts';
import { readKubeconfig } from './api/kubeconfig.ts';
import { createKubernetesEngine } from './kubernetes.ts';
import type { Routers } from './objects/routers.ts';
import type { KubernetesSettings } from './settings.ts';

/** The context that stands for the account of the pod that this service runs in. */
const inCluster = 'in-cluster';

/** `context`: null for the current one of the kubeconfig. What cannot be read stops the start. */
export function openKubernetes(
  region: string,
  context: string | null,
  owner: string,
  { kubernetes, registryMirrors, log }: { kubernetes: KubernetesSettings; registryMirrors: Mirrors; log?: Log },
): Engine {
  let access: ClusterAccess;
  try {
    const { kubeconfig, allowExec } = kubernetes;
    access = context === inCluster ? readInCluster() : readKubeconfig(kubeconfig, { context, allowExec });
  } catch (error) {
    if (!(error instanceof AccessError)) throw error;
    throw new StartError(`SLUICE_REGIONS ${region}: ${error.message}`);
  }
  return createKubernetesEngine({
    access,
    installation: owner,
    namespaces: kubernetes.namespaces,
    routers: routersOf(kubernetes, context, access),
    registry: createRegistry({ mirrors: registryMirrors }),
    ...(log && { log: log.child({ region }) }),
  });
}

function routersOf({ routers }: KubernetesSettings, context: string | null, { namespace }: ClusterAccess): Routers[] {
  if (routers.length > 0 || context !== inCluster || namespace === null) return routers;
  return [{ namespace, labels: {} }];
}
