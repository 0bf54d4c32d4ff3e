// The settings of what instances print.
import { days, headerList, s3Address, syslogAddress, url, wholeNumber } from '../lib/setting-parsers.ts';

export const logsSettings = {
  SLUICE_LOGS_MB: {
    default: '100',
    about: 'Megabytes of compressed logs to keep per environment. The oldest are deleted first.',
    parse: wholeNumber(1, 1_000_000),
  },
  SLUICE_LOGS_DAYS: { default: '14', about: 'Days to keep logs.', parse: days },
  SLUICE_LOGS_S3: {
    default: '',
    about: 'Bucket for new logs, `s3://bucket/prefix`, instead of local files or PostgreSQL.',
    parse: s3Address,
  },
  SLUICE_LOGS_SYSLOG: {
    default: '',
    about: 'Syslog receiver (RFC 5424) for all log lines: `udp://host:514`, `tcp://host:601` or `tls://host:6514`.',
    parse: syslogAddress,
  },
  SLUICE_LOGS_OTLP: {
    default: '',
    about: 'OTLP/HTTP receiver (JSON) for all log lines: `https://collector:4318/v1/logs`.',
    parse: url(['http:', 'https:']),
  },
  SLUICE_LOGS_OTLP_HEADERS: {
    default: '',
    about: 'Headers of OTLP requests, comma-separated `name=value`. Values may be percent-encoded.',
    parse: headerList,
  },
};
