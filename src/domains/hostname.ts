// Which names may be added, and in what form they are kept.
import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';

/** Names that are not anybody's to add. */
export interface ReservedNames {
  /** Environments have their addresses below it. */
  routerDomain: string;
  /** Where the service itself answers. */
  hosts: readonly string[];
}

export type HostnameCheck = { hostname: string; mistake: null } | { hostname: null; mistake: string };

const maxLength = 253;
const label = /^(?!-)[a-z0-9-]{1,63}(?<!-)$/;

const wrong = (mistake: string): HostnameCheck => ({ hostname: null, mistake });

/** The name as it is kept: ASCII, lower case, without the dot at its end; or what is wrong with it. */
export function checkHostname(text: string, { routerDomain, hosts }: ReservedNames): HostnameCheck {
  const form = wrongForm(text);
  if (form !== null) return wrong(form);
  const ascii = domainToASCII(text).toLowerCase().replace(/\.$/, '');
  if (ascii === '') return wrong('is not a hostname');
  if (isIP(ascii) !== 0) return wrong('is an address; certificates are for names');
  if (ascii.length > maxLength) return wrong(`is longer than ${maxLength} characters in ASCII`);
  const labels = ascii.split('.');
  if (!labels.every((part) => label.test(part))) {
    return wrong('is not a hostname: parts between dots are 1 to 63 letters, digits and hyphens, no hyphen at an end');
  }
  if (labels.some((part) => part.startsWith('xn--') && domainToUnicode(part) === part)) {
    return wrong('is not a hostname: a part that begins with xn-- stands for nothing');
  }
  if (labels.length < 2) return wrong('must have a dot in it, as shop.example has');
  if (ascii === routerDomain || ascii.endsWith(`.${routerDomain}`)) {
    return wrong(`is at or below ${routerDomain}, where the service gives out addresses itself`);
  }
  if (hosts.includes(ascii)) return wrong('is the address of the service itself');
  return { hostname: ascii, mistake: null };
}

/** What people write that looks like a hostname to them. */
function wrongForm(text: string): string | null {
  if (text.includes('*')) return 'is a wildcard; add each name by itself';
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return 'must be a name alone, without https:// in front';
  if (text.startsWith('[') || isIP(text) !== 0) return 'is an address; certificates are for names';
  if (/:\d*$/.test(text)) return 'must be without a port';
  if (/[/\\?#@:%\s]/.test(text)) return 'is not a hostname';
  return null;
}

/** The host of an address in the settings, if it is a name. */
export function hostOf(url: string | null): string[] {
  const host = url === null ? undefined : URL.parse(url)?.hostname;
  return host ? [host.toLowerCase()] : [];
}
