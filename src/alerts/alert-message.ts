// The text of an alert, for people.
import type { AlertMetric, Comparator } from '../contract/alert-rules.ts';
import type { Rule } from './evaluate.ts';

const sides: Record<Comparator, string> = { gt: 'above', lt: 'below' };

export function alertMessage(
  { metric, comparator, threshold, window_s }: Rule,
  subject: string,
  value: number,
): string {
  const side = sides[comparator];
  const over = `over ${window_s} s`;
  const messages: Record<AlertMetric, string> = {
    error_rate: `The error rate of ${subject} is ${percent(value)} ${over}, ${side} ${percent(threshold)}.`,
    p95_ms: `The p95 latency of ${subject} is ${value} ms ${over}, ${side} ${threshold} ms.`,
    request_rate: `The request rate is ${value} per second ${over}, ${side} ${threshold}.`,
    healthy_instances: `The active revision has ${value} healthy instances, ${side} ${threshold}.`,
    restarts: `Instances ended by themselves ${value} times ${over}, ${side} ${threshold}.`,
    certificate_days_left: `The certificate of ${subject} expires in ${value} days, ${side} ${threshold}.`,
    external: 'An external system fired this alert.',
  };
  return messages[metric];
}

const percent = (rate: number): string => `${Math.round(rate * 10_000) / 100} %`;
