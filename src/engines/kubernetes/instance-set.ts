import type { HealthCheck } from '../../contract/environments.ts';
import type { RegistryAuth, Resources } from '../engine.ts';

/** Equal instances of one revision, of which Kubernetes keeps as many as are wanted. Nothing of it changes but their number. */
export interface InstanceSet {
  /** Chosen by the caller; keeping the same id twice gives one set. */
  id: string;
  project: string;
  environment: string;
  revision: number;
  /** As the deployment names it, `registry/name:tag`. */
  image: string;
  digest: string;
  port: number;
  variables: Record<string, string>;
  resources: Resources;
  /** By which the kubelet knows whether an instance is ready; null: it is once it accepts connections. */
  healthCheck: HealthCheck | null;
  /** Seconds between the request to end and the end. */
  drainS: number;
  /** What instances are told to be called (DEPLOY_INSTANCE); null: as their pods. */
  instanceName: string | null;
  /** For the registry of the image; null: as anyone may. */
  login: RegistryAuth | null;
}
