// What the data plane asks of whoever keeps the certificates.
import type { SecureContext } from 'node:tls';

export interface Certificates {
  /** For the name a visitor asked for, lower case; null: nobody here has it. Asked at every handshake. */
  contextFor(hostname: string): Promise<SecureContext | null>;
  /** The answer to an http-01 challenge of a certificate authority; null: there is no such challenge. */
  answerChallenge(hostname: string, token: string): Promise<string | null>;
}
