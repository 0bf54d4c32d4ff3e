// The account that Kubernetes gives to a pod.
import { readFileSync } from 'node:fs';
import { AccessError, type ClusterAccess } from './access.ts';
import { tokenFile } from './token-file.ts';

export const accountFolder = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Every cluster has this name for its own API, and the API's certificate has it too. */
const server = 'https://kubernetes.default.svc';

export function readInCluster(folder = accountFolder): ClusterAccess {
  const read = (name: string): string => {
    try {
      return readFileSync(`${folder}/${name}`, 'utf8');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new AccessError(`this is no pod with a service account: ${folder}/${name} cannot be read (${code})`);
    }
  };
  return {
    server,
    ca: read('ca.crt'),
    serverName: null,
    client: null,
    token: tokenFile(`${folder}/token`),
    namespace: read('namespace').trim(),
  };
}
