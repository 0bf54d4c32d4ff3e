// Where routers get certificates, and the responses to challenges, from.

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
