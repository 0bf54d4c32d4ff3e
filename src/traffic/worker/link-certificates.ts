// Certificates of a worker: from disk where it knows none, so that a start without an agent serves them; from the agent
// from then on.
import type { CertificateSource, StoredCertificate } from '../certificates.ts';
import { type AgentLink, NoAnswer } from './agent-link.ts';
import type { DiskCertificates } from './disk-certificates.ts';

export function linkCertificates(link: AgentLink, disk: DiskCertificates): CertificateSource {
  return {
    async find(hostname, known) {
      try {
        return (await link.ask({ type: 'certificate', hostname, known })) as StoredCertificate | 'current' | null;
      } catch (error) {
        if (!(error instanceof NoAnswer) || known !== null) throw error;
        return disk.read(hostname);
      }
    },
    async answerChallenge(hostname, token) {
      return (await link.ask({ type: 'challenge', hostname, token })) as string | null;
    },
  };
}
