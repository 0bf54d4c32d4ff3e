// Who may have a hostname: the one who proves to control it. Names that nobody can own need no proof. No I/O.
import type { DomainProof } from '../contract/domains.ts';

/** Reserved by RFC 2606, RFC 6761 and ICANN: no registry sells names below them. */
const unowned = ['localhost', 'test', 'example', 'internal'];

export interface OwnershipRules {
  /** Whether certificates come from the local CA. */
  local: boolean;
  /** Domains that the operator vouches for, with the local CA. */
  localDomains: readonly string[];
}

/** Whether no proof is needed: nobody can own the name, so the local CA may sign it for anyone. */
export function needsNoProof(hostname: string, { local, localDomains }: OwnershipRules): boolean {
  return local && [...unowned, ...localDomains].some((domain) => hostname.endsWith(`.${domain}`));
}

/** `earlier`: the domain had a certificate before proofs were asked for, and goes on as it was. */
export function mayLocalCaSign(
  { hostname, proof }: { hostname: string; proof: DomainProof | null },
  rules: OwnershipRules,
): boolean {
  return proof === 'earlier' || needsNoProof(hostname, rules);
}

/** The owner of a name publishes this record to say which account may use it. */
export const txtRecordOf = ({ hostname, account_id }: { hostname: string; account_id: string }) => ({
  name: `_sluice.${hostname}`,
  value: account_id,
});

/** What to do about a missing proof, as the end of a sentence. */
export function recordToAdd(domain: { hostname: string; account_id: string }): string {
  const { name, value } = txtRecordOf(domain);
  return `the TXT record ${name} with the value ${value}`;
}
