// What an alert says to people.
import type { AlertMetric, Comparator } from '../contract/alert-rules.ts';
import type { Tables } from '../db/tables.ts';

type Told = Pick<Tables['alert_rule'], 'metric' | 'comparator' | 'threshold' | 'window_s'>;

const sides: Record<Comparator, string> = { gt: 'above', lt: 'below' };

export function messageOf({ metric, comparator, threshold, window_s }: Told, subject: string, value: number): string {
  const side = sides[comparator];
  const over = `over ${window_s} s`;
  const words: Record<AlertMetric, string> = {
    error_rate: `The error rate of ${subject} is ${percent(value)} ${over}, ${side} ${percent(threshold)}.`,
    p95_ms: `The p95 latency of ${subject} is ${value} ms ${over}, ${side} ${threshold} ms.`,
    request_rate: `There are ${value} requests a second ${over}, ${side} ${threshold}.`,
    healthy_instances: `The active revision has ${value} healthy instances, ${side} ${threshold}.`,
    certificate_days_left: `The certificate of ${subject} ends in ${value} days, ${side} ${threshold}.`,
    external: 'It fires elsewhere.',
  };
  return words[metric];
}

const percent = (rate: number): string => `${Math.round(rate * 10_000) / 100} %`;
