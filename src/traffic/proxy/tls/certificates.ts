// Where the data plane gets certificates, and the responses to challenges, from.
import type { SecureContext } from 'node:tls';

export interface StoredCertificate {
  /** Another certificate of the same name has another id. */
  id: string;
  chainPem: string;
  keyPem: string;
}

export interface CertificateSource {
  /**
   * The current certificate of a host name, in lower case; null: there is none; `current`: it is the one with the id
   * `known`. Rejects where that cannot be said at the moment.
   */
  find(hostname: string, known: string | null): Promise<StoredCertificate | 'current' | null>;
  /** The response to an http-01 challenge of a certificate authority; null: there is no such challenge. */
  answerChallenge(hostname: string, token: string): Promise<string | null>;
}

/** Certificates ready for handshakes. */
export interface Certificates {
  /** Called at every handshake with the host name the visitor asks for, in lower case; null: no domain here has it. */
  contextFor(hostname: string): Promise<SecureContext | null>;
  answerChallenge(hostname: string, token: string): Promise<string | null>;
}
