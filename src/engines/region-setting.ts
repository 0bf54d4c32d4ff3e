// SLUICE_REGIONS: comma-separated `name=engine`.
import { optional, wrong } from '../lib/setting-forms.ts';

export type EngineChoice =
  | { kind: 'auto' }
  | { kind: 'standin' }
  | { kind: 'docker'; address: string | null }
  | { kind: 'kubernetes'; context: string | null };

/** A choice that names an engine. */
export type OpenableChoice = Exclude<EngineChoice, { kind: 'auto' }>;

export interface RegionSetting {
  name: string;
  engine: EngineChoice;
}

/** As it is set, and as it is remembered. */
export function engineText(choice: OpenableChoice): string {
  switch (choice.kind) {
    case 'standin':
      return 'standin:';
    case 'docker':
      return `docker:${choice.address ?? ''}`;
    case 'kubernetes':
      return `kubernetes:${choice.context ?? ''}`;
  }
}

export function parseEngine(value: string): EngineChoice {
  const [kind, ...rest] = value.split(':');
  const argument = optional(rest.join(':'));
  if (kind === 'auto' && argument === null) return { kind };
  if (kind === 'standin' && argument === null) return { kind };
  if (kind === 'docker') return { kind, address: argument };
  if (kind === 'kubernetes') return { kind, context: argument };
  return wrong(`"${value}" is not an engine: auto, standin:, docker:[address] or kubernetes:[context]`);
}

export function parseRegions(value: string): RegionSetting[] {
  const seen = new Set<string>();
  return value.split(',').map((item) => {
    const [name = '', choice] = item.split(/=(.*)/s);
    if (!/^[a-z][a-z0-9-]{0,38}$/.test(name)) wrong(`"${item}" must be name=engine, as in local=auto`);
    if (seen.has(name)) wrong(`the region ${name} is named twice`);
    seen.add(name);
    return { name, engine: parseEngine(choice ?? 'auto') };
  });
}
