// Certificates as handshakes use them.
import type { SecureContext } from 'node:tls';

export interface Certificates {
  /** Called at every handshake with the host name the visitor asks for, in lower case; null: no domain here has it. */
  contextFor(hostname: string): Promise<SecureContext | null>;
  /** The response to an http-01 challenge of a certificate authority; null: there is no such challenge. */
  answerChallenge(hostname: string, token: string): Promise<string | null>;
}
