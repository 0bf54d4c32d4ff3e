// The parts of Kubernetes objects that are read here. The API has many more fields.

export interface Metadata {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  ownerReferences?: { uid: string; kind: string; name: string }[];
  managedFields?: unknown;
}

export interface KubeObject {
  metadata: Metadata;
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
}

export interface Terminated {
  exitCode: number;
  reason?: string;
  message?: string;
  signal?: number;
  finishedAt?: string | null;
}

export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string | null };
  terminated?: Terminated;
}

export interface ContainerStatus {
  name: string;
  ready?: boolean;
  /** Whether the program that runs now has passed its startup probe. */
  started?: boolean;
  restartCount?: number;
  state?: ContainerState;
  lastState?: ContainerState;
}

interface Container {
  name: string;
  image?: string;
  ports?: { containerPort: number }[];
  resources?: { limits?: { memory?: string } };
}

export interface Pod extends KubeObject {
  spec?: {
    nodeName?: string;
    containers?: Container[];
  };
  status?: {
    phase?: string;
    reason?: string;
    message?: string;
    podIP?: string;
    conditions?: Condition[];
    containerStatuses?: ContainerStatus[];
  };
}

export interface ReplicaSet extends KubeObject {
  spec?: { replicas?: number; template?: { metadata?: { annotations?: Record<string, string> } } };
  status?: { replicas?: number; conditions?: Condition[] };
}

export interface ObjectList<T> {
  metadata: { resourceVersion?: string; continue?: string };
  items: T[];
}
