import type { Paint } from '../terminal/output.ts';
import { timeOfDay } from '../terminal/quantities.ts';
import { clean } from '../terminal/width.ts';

/** What events, deliveries and tests have in common. */
export interface EventSummary {
  id: string;
  type: string;
  created_at: string;
  project_id?: string | null;
  data?: unknown;
}

/** The record of an event in short; empty for a kind this version does not know. */
function gist({ type, data }: EventSummary): string {
  const record = (data ?? {}) as Record<string, unknown>;
  const of = (name: string) => clean(String(record[name] ?? '-'));
  if (type.startsWith('deployment.')) {
    const failure = record.failure as { code: string; message: string } | null | undefined;
    return `${of('environment')} ${of('revision')} ${of('image')}${failure ? `: ${failure.code}, ${clean(failure.message)}` : ''}`;
  }
  if (type === 'revision.rolled_back') return `${of('environment')} ${of('id')} ${of('image')}, cause: ${of('cause')}`;
  if (type.startsWith('alert.')) return `${of('environment')} ${of('name')}: ${of('message')}`;
  if (type.startsWith('domain.')) return `${of('hostname')}, leads to ${of('environment')}`;
  return '';
}

export function eventLine(event: EventSummary, project: string, paint: Paint): string {
  const bad = /failed|fired|rolled_back/.test(event.type);
  const kind = paint(bad ? 'red' : /succeeded|resolved|renewed/.test(event.type) ? 'green' : 'cyan', event.type);
  return `${paint('dim', timeOfDay(event.created_at))}  ${kind}  ${paint('bold', clean(project))}  ${gist(event)}`.trimEnd();
}
