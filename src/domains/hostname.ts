// Which hostnames may be added, in what form they are stored, and who may have one: the account that proves to control
// it. Names that nobody can own need no proof. No I/O.
import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';
import type { DomainProof } from '../contract/domains.ts';

/** Hostnames that users cannot add. */
export interface ReservedNames {
  /** The addresses of environments are below it. */
  routerDomain: string;
  /** The service's own hostnames. */
  hosts: readonly string[];
}

type HostnameCheck = { hostname: string; mistake: null } | { hostname: null; mistake: string };

const maxLength = 253;
const label = /^(?!-)[a-z0-9-]{1,63}(?<!-)$/;

const invalid = (mistake: string): HostnameCheck => ({ hostname: null, mistake });

/** The hostname as it is stored: ASCII, lower case, no trailing dot; or what is wrong with it. */
export function checkHostname(text: string, { routerDomain, hosts }: ReservedNames): HostnameCheck {
  const form = wrongForm(text);
  if (form !== null) return invalid(form);
  const ascii = domainToASCII(text).toLowerCase().replace(/\.$/, '');
  if (ascii === '') return invalid('is not a hostname');
  if (isIP(ascii) !== 0) return invalid('is an IP address; a hostname is needed');
  if (ascii.length > maxLength) return invalid(`is longer than ${maxLength} characters in ASCII`);
  const labels = ascii.split('.');
  if (!labels.every((part) => label.test(part))) {
    return invalid(
      'is not a hostname: each label has 1 to 63 letters, digits and hyphens, and no hyphen at either end',
    );
  }
  if (labels.some((part) => part.startsWith('xn--') && domainToUnicode(part) === part)) {
    return invalid('is not a hostname: a label that begins with xn-- is not valid Punycode');
  }
  if (labels.length < 2) return invalid('must contain a dot, as in shop.example');
  if (ascii === routerDomain || ascii.endsWith(`.${routerDomain}`)) {
    return invalid(`is at or below ${routerDomain}, which is reserved for the addresses of environments`);
  }
  if (hosts.includes(ascii)) return invalid('is the hostname of the service itself');
  return { hostname: ascii, mistake: null };
}

/** Common mistakes, each with a message of its own. */
function wrongForm(text: string): string | null {
  if (text.includes('*')) return 'is a wildcard; add each hostname separately';
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return 'must be a hostname without https:// in front';
  if (text.startsWith('[') || isIP(text) !== 0) return 'is an IP address; a hostname is needed';
  if (/:\d*$/.test(text)) return 'must not have a port';
  if (/[/\\?#@:%\s]/.test(text)) return 'is not a hostname';
  return null;
}

/** The hostname of a URL in the settings, as a list of at most one. */
export function hostOf(url: string | null): string[] {
  const host = url === null ? undefined : URL.parse(url)?.hostname;
  return host ? [host.toLowerCase()] : [];
}

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
