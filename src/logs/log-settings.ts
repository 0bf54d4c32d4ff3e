// The settings of what instances print.
import { days, headerList, s3Address, syslogAddress, url, wholeNumber } from '../lib/setting-parsers.ts';

export const logsSettings = {
  SLUICE_LOGS_MB: {
    default: '100',
    about:
      'What instances print is kept up to this many megabytes, compressed, per environment; the oldest goes first.',
    parse: wholeNumber(1, 1_000_000),
  },
  SLUICE_LOGS_DAYS: { default: '14', about: 'And no longer than this.', parse: days },
  SLUICE_LOGS_S3: {
    default: '',
    about:
      'A bucket where new ones are kept, `s3://bucket/prefix`, in place of files or of rows of PostgreSQL. Credentials, ' +
      'region and endpoint are those that other S3 tools read: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, ' +
      '`AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`.',
    parse: s3Address,
  },
  SLUICE_LOGS_SYSLOG: {
    default: '',
    about:
      'Where the same lines are sent as syslog (RFC 5424): `udp://host:514`, `tcp://host:601` or `tls://host:6514`. See ' +
      'docs/logs.md.',
    parse: syslogAddress,
  },
  SLUICE_LOGS_OTLP: {
    default: '',
    about: 'Where they are sent by OpenTelemetry’s protocol, as JSON: `https://collector:4318/v1/logs`.',
    parse: url(['http:', 'https:']),
  },
  SLUICE_LOGS_OTLP_HEADERS: {
    default: '',
    about: 'Headers of these requests, comma-separated `name=value`; the value may be percent-encoded.',
    parse: headerList,
  },
};
