// What the Kubernetes engine asks of the API server, as RBAC names it: `group/resource` and verbs. Server-side apply is
// `patch`, and `create` where the object is new. The manifests of deploy/kubernetes give exactly these rights: a change of
// what src/engines/kubernetes asks for is a change here, and test/deploy says which manifests have to follow.

export const engineCalls: Record<string, string[]> = {
  'apps/replicasets': ['get', 'list', 'watch', 'create', 'patch', 'delete'],
  pods: ['list', 'watch', 'patch', 'delete'],
  'pods/log': ['get'],
  secrets: ['create', 'patch'],
  'networking.k8s.io/networkpolicies': ['create', 'patch'],
  'policy/poddisruptionbudgets': ['create', 'patch'],
  /** Only with a namespace for each project. */
  namespaces: ['get', 'create', 'patch'],
};
