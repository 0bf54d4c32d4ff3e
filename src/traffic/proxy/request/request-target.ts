// Which host a request is for, and which path on it.

const port = /^\d{1,5}$/;
const hostName = /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])$/;

/** The host name of a Host header, lower case, without port and final dot; '' where the header has none. */
export function hostNameOf(header: string): string {
  const from = header.startsWith('[') ? header.indexOf(']') : 0;
  if (from === -1) return '';
  const colon = header.indexOf(':', from);
  if (colon !== -1 && !port.test(header.slice(colon + 1))) return '';
  const name = (colon === -1 ? header : header.slice(0, colon)).toLowerCase();
  if (!hostName.test(name)) return '';
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

const absolute = /^https?:\/\/([^/?#]*)(.*)$/i;

/**
 * The path with its query; null where the target is malformed. A target that names a host must name that of the Host
 * header: otherwise two readers of the request could take it for different hosts.
 */
export function pathOf(target: string, host: string): string | null {
  if (target.charCodeAt(0) === 47 /* / */) return target;
  const parts = absolute.exec(target);
  if (!parts || parts[1]!.toLowerCase() !== host.toLowerCase()) return null;
  const rest = parts[2]!;
  return rest.startsWith('/') ? rest : `/${rest}`;
}
