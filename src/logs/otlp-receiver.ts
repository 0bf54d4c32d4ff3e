// OpenTelemetry's protocol over HTTP, as JSON: https://opentelemetry.io/docs/specs/otlp/#otlphttp
import { revisionId } from '../contract/references.ts';
import { timeMs } from '../lib/log-lines.ts';
import { LinesRefused, type Receiver, type ShippedLine } from './log-shipper.ts';
import type { LogLevel } from './read/line-fields.ts';
import type { LoggedInstance } from './store/segments.ts';

export interface OtlpAddress {
  url: string;
  headers: Record<string, string>;
}

const severityNumbers: Record<LogLevel, number> = { trace: 1, debug: 5, info: 9, warn: 13, error: 17, fatal: 21 };
const withinMs = 10_000;
/** Of what was sent. Others say that the address, the login or the time is wrong, which may be corrected. */
const refusals = new Set([400, 411, 413, 414, 415, 422, 431]);

const attribute = (key: string, value: string) => ({ key, value: { stringValue: value } });

const resourceOf = ({ id, key, revision }: LoggedInstance) => ({
  attributes: [
    attribute('service.name', key.environment),
    attribute('service.namespace', key.projectId),
    attribute('service.instance.id', id),
    attribute('service.version', revisionId(revision)),
  ],
});

const recordOf = ({ time, stream, text, level }: ShippedLine) => ({
  timeUnixNano: `${timeMs(time)}${time.slice(23, 29)}`,
  ...(level && { severityNumber: severityNumbers[level], severityText: level.toUpperCase() }),
  body: { stringValue: text },
  attributes: [attribute('log.iostream', stream)],
});

export function otlpBody(lines: ShippedLine[]) {
  const byInstance = Map.groupBy(lines, ({ instance }) => instance.id);
  return {
    resourceLogs: [...byInstance.values()].map((own) => ({
      resource: resourceOf(own[0]!.instance),
      scopeLogs: [{ scope: { name: 'sluice' }, logRecords: own.map(recordOf) }],
    })),
  };
}

export function otlpReceiver({ url, headers }: OtlpAddress): Receiver {
  const closing = new AbortController();
  return {
    name: 'otlp',
    async send(lines) {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(otlpBody(lines)),
        redirect: 'error',
        signal: AbortSignal.any([AbortSignal.timeout(withinMs), closing.signal]),
      });
      await response.body?.cancel();
      if (response.ok) return;
      const said = `the receiver answered ${response.status}`;
      throw refusals.has(response.status) ? new LinesRefused(said) : new Error(said);
    },
    close: () => closing.abort(),
  };
}
