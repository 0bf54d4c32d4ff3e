// What a set keeps secret: its variables, which never change, and the login of its registry, which may.
import { revisionId } from '../../../contract/revision-id.ts';
import type { InstanceSet, RegistryAuth } from '../../engine.ts';
import { labelsOf, pullSecretName, setName, variablesName } from './names.ts';

/** The ReplicaSet: what it owns is removed with it. */
interface Owner {
  name: string;
  uid: string;
  namespace: string;
}

function secret(owner: string, set: InstanceSet, { uid, namespace }: Owner, name: string, rest: object): object {
  const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: setName(owner, set), uid }];
  const metadata = { name, namespace, labels: labelsOf(owner, set), ownerReferences };
  return { apiVersion: 'v1', kind: 'Secret', metadata, ...rest };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

export function variablesSecret(owner: string, set: InstanceSet, replicaSet: Owner): object {
  const variables: Record<string, string> = {
    DEPLOY_PROJECT: set.project,
    DEPLOY_ENVIRONMENT: set.environment,
    DEPLOY_REVISION: revisionId(set.revision),
    ...set.variables,
    PORT: String(set.port),
  };
  const data = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, base64(value)]));
  return secret(owner, set, replicaSet, variablesName(owner, set), { type: 'Opaque', immutable: true, data });
}

export function pullSecret(owner: string, set: InstanceSet, login: RegistryAuth, replicaSet: Owner): object {
  const { username, password, identitytoken } = login;
  const entry = {
    ...(identitytoken === undefined ? { username, password } : { identitytoken }),
    auth: base64(`${username}:${password}`),
  };
  const server = login.server === 'docker.io' ? 'https://index.docker.io/v1/' : login.server;
  return secret(owner, set, replicaSet, pullSecretName(owner, set), {
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': base64(JSON.stringify({ auths: { [server]: entry } })) },
  });
}
