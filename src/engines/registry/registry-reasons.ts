// What a tenant is told of why a registry was of no use. No I/O.

/** These words and no others. The first that matches counts. */
const publicReasons: [reason: string, pattern: RegExp][] = [
  ['the answer is longer than it may be', /the answer is longer than/],
  ['it leads to where no registry may be', /where no registry may be/],
  ['too many requests', /toomanyrequests|too many requests|rate limit|\b429\b/i],
  ['no such host', /no such host|server misbehaving|ENOTFOUND|EAI_AGAIN/i],
  ['connection refused', /connection refused|ECONNREFUSED/i],
  ['no route to it', /no route to host|network is unreachable|EHOSTUNREACH|ENETUNREACH/i],
  ['its certificate is not accepted', /x509|certificate|altnames|SELF_SIGNED|CERT_/i],
  ['it does not speak TLS', /HTTP response to HTTPS client|malformed HTTP response|wrong version number/i],
  ['no image for this platform', /no matching manifest/i],
  ['no space left on device', /no space left on device/i],
  ['no answer in time', /time-?out|timed out|deadline exceeded|request canceled|ETIMEDOUT/i],
  ['the connection breaks off', /connection reset|broken pipe|\bEOF\b|ECONNRESET|EPIPE|tls: /i],
];

/** The text itself may hold what an internal page answered, and goes to the operator's log only. */
export function publicReason(text: string): string | null {
  const found = publicReasons.find(([, pattern]) => pattern.test(text))?.[0];
  const status = /\b(?:status(?: code)?:? |HTTP )(\d{3})\b|\b([45]\d\d) [A-Z][a-z]+/.exec(text);
  const number = status?.[1] ?? status?.[2];
  return found ?? (number === undefined ? null : `status ${number}`);
}
