// Parsers for the values of settings. They throw an InvalidSetting whose message continues a sentence that starts with the
// setting's name.
import { parseRange, type Range } from './address.ts';
import { parseS3Address, type S3Address } from './s3-address.ts';

export class InvalidSetting extends Error {}
export const invalid = (message: string): never => {
  throw new InvalidSetting(message);
};

export const text = (value: string) => value;
export const optional = (value: string) => (value === '' ? null : value);

export function port(value: string): number {
  const number = Number(value);
  if (!/^\d{1,5}$/.test(value) || number > 65_535) invalid(`must be a port from 0 to 65535 (0: any free one)`);
  return number;
}

export const portRange =
  (least: number) =>
  (value: string): { first: number; last: number } => {
    const [, first, last] = /^(\d{4,5})-(\d{4,5})$/.exec(value)?.map(Number) ?? [];
    if (!first || !last || first < 1024 || last > 65_535 || last - first + 1 < least) {
      return invalid(`must be a range of ${least} ports or more from 1024 to 65535, such as 20000-29999`);
    }
    return { first, last };
  };

export function url(schemes: string[]) {
  return (value: string): string | null => {
    if (value === '') return null;
    const parsed = URL.parse(value);
    if (!parsed || !schemes.includes(parsed.protocol)) {
      invalid(`must be an address that begins with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}`);
    }
    return value.replace(/\/+$/, '');
  };
}

export function choice<const T extends string>(values: readonly T[]) {
  return (value: string): T =>
    values.includes(value as T) ? (value as T) : invalid(`must be one of ${values.join(', ')}`);
}

export function hostName(value: string): string {
  return /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(value)
    ? value.toLowerCase()
    : invalid('must be a host name');
}

export const hostNames = (value: string): string[] =>
  value === '' ? [] : value.split(',').map((item) => hostName(item.trim()));

export function headerName(value: string): string {
  return /^[A-Za-z0-9][A-Za-z0-9-]{0,99}$/.test(value) ? value : invalid('must be the name of a header');
}

export function cidrs(value: string): Range[] {
  const items = value.split(',').filter((item) => item !== '');
  return items.map(
    (item) => parseRange(item.trim()) ?? invalid(`"${item}" is not an address range such as 10.0.0.0/8`),
  );
}

export const wholeNumber =
  (least: number, most: number) =>
  (value: string): number => {
    const number = Number(value);
    const fits = /^\d{1,9}$/.test(value) && number >= least && number <= most;
    return fits ? number : invalid(`must be a whole number from ${least} to ${most}`);
  };

export function days(value: string): number {
  const number = Number(value);
  return /^\d{1,5}$/.test(value) && number >= 1 ? number : invalid('must be a whole number of days, 1 or more');
}

export function bearerToken(value: string): string | null {
  if (value === '') return null;
  return /^[!-~]{20,200}$/.test(value) ? value : invalid('must be 20 to 200 printable characters without spaces');
}

export function secretKey(value: string): Buffer | null {
  if (value === '') return null;
  const bytes = /^[0-9a-f]{64}$/i.test(value) ? Buffer.from(value, 'hex') : Buffer.from(value, 'base64');
  return bytes.length === 32 ? bytes : invalid('must be 32 bytes in base64 or hexadecimal (openssl rand -base64 32)');
}

export function httpsRedirect(value: string): 'auto' | 'on' | 'off' | number {
  if (value === 'auto' || value === 'on' || value === 'off') return value;
  const number = Number(value);
  const isPort = /^\d{1,5}$/.test(value) && number >= 1 && number <= 65_535;
  return isPort ? number : invalid('must be auto, on, off or a port from 1 to 65535');
}

export function syslogAddress(value: string): { transport: 'udp' | 'tcp' | 'tls'; host: string; port: number } | null {
  if (value === '') return null;
  const [, transport, host, at] = /^(udp|tcp|tls):\/\/(\[[0-9a-f:]+\]|[^:/\s[\]]+):(\d{1,5})$/i.exec(value) ?? [];
  if (!transport || !host || port(at!) === 0) return invalid('must be udp://, tcp:// or tls:// with a host and a port');
  return { transport: transport.toLowerCase() as 'udp', host: host.replace(/^\[|\]$/g, ''), port: port(at!) };
}

export function s3Address(value: string): S3Address | null {
  if (value === '') return null;
  return parseS3Address(value) ?? invalid('must be of the form s3://bucket/prefix');
}

export function headerList(value: string): Record<string, string> {
  const items = value.split(',').filter((item) => item.trim() !== '');
  return Object.fromEntries(
    items.map((item) => {
      const [, name, text] = /^\s*([A-Za-z0-9-]{1,100})=([!-~]*)\s*$/.exec(item) ?? invalid('must be name=value,…');
      return [name!.toLowerCase(), decodeURIComponent(text!)];
    }),
  );
}
