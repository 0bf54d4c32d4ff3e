// The certificates by which a Docker host and we know each other, named as Docker names them (DOCKER_CERT_PATH).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../lib/start-error.ts';

export interface ClientCertificates {
  ca: Buffer;
  cert: Buffer;
  key: Buffer;
}

export function readCertificates(folder: string): ClientCertificates {
  const read = (name: string): Buffer => {
    try {
      return readFileSync(join(folder, name));
    } catch (error) {
      throw new StartError(
        `SLUICE_REGIONS: the certificates of a Docker host cannot be read: ${(error as Error).message}`,
      );
    }
  };
  return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') };
}
