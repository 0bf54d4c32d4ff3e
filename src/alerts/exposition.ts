// Figures in Prometheus' text format.

export interface Figure {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  samples: FigureSample[];
}

export interface FigureSample {
  labels: Record<string, string>;
  value: number;
  /** Of a histogram: `_bucket` or `_count`. */
  suffix?: string;
}

export function expose(figures: Figure[]): string {
  return figures
    .map(({ name, type, help, samples }) =>
      [
        `# HELP ${name} ${help}`,
        `# TYPE ${name} ${type}`,
        ...samples.map(({ labels, value, suffix = '' }) => `${name}${suffix}${labelsOf(labels)} ${value}`),
        '',
      ].join('\n'),
    )
    .join('');
}

function labelsOf(labels: Record<string, string>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

const escaped = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
