// Small line charts of a few series over the same time. The values are also available as a table.
import { useId } from 'react';

export interface Series {
  name: string;
  /** Drawn in the colour of a new revision. */
  fresh: boolean;
  points: { at: string; value: number | null }[];
}

interface ChartProps {
  title: string;
  series: Series[];
  format(value: number): string;
  /** The top of the scale is at least this. */
  atLeast: number;
  /** Drawn as a horizontal line. */
  threshold?: number | null;
  thresholdName?: string;
  /** What it means that a series has no value. */
  absent?: string;
}

const width = 320;
const height = 96;
const pad = 4;

/** The line has gaps where there is no value; a value between two gaps is a dot. */
function drawingOf(points: Series['points'], from: number, to: number, top: number): { line: string; dots: string } {
  const span = Math.max(1, to - from);
  let line = '';
  let dots = '';
  for (const [index, { at, value }] of points.entries()) {
    if (value === null) continue;
    const x = (((Date.parse(at) - from) / span) * width).toFixed(1);
    const y = (height - pad - (value / top) * (height - 2 * pad)).toFixed(1);
    const isFirst = (points[index - 1]?.value ?? null) === null;
    const isLast = (points[index + 1]?.value ?? null) === null;
    if (isFirst && isLast) dots += `M${x} ${y}h.1`;
    else line += isFirst ? `M${x} ${y}` : `L${x} ${y}`;
  }
  return { line, dots };
}

const latestOf = ({ points }: Series): number | null => points.findLast(({ value }) => value !== null)?.value ?? null;

export function Chart({ title, series, format, atLeast, ...options }: ChartProps) {
  const { threshold = null, thresholdName = 'threshold', absent = 'no requests' } = options;
  const id = useId();
  const values = series.flatMap(({ points }) => points.map(({ value }) => value ?? 0));
  const top = Math.max(atLeast, (threshold ?? 0) * 1.2, ...values.map((value) => value * 1.1));
  const times = series.flatMap(({ points }) => points.map(({ at }) => Date.parse(at)));
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const summary = series.map((each) => {
    const latest = latestOf(each);
    return `${each.name} ${latest === null ? absent : format(latest)}`;
  });
  const thresholdY = threshold === null ? 0 : height - pad - (threshold / top) * (height - 2 * pad);
  return (
    <figure className="chart">
      <figcaption id={id}>{title}</figcaption>
      {series.length === 0 && <p className="small">No data yet.</p>}
      <ul className="chart-legend">
        {series.map((each) => (
          <li key={each.name} className={each.fresh ? 'fresh' : undefined}>
            {each.name} <strong>{latestOf(each) === null ? '–' : format(latestOf(each)!)}</strong>
          </li>
        ))}
      </ul>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${summary.join(', ') || 'no data'}`}
      >
        <path className="grid" d={`M0 ${height - pad} H${width} M0 ${height / 2} H${width} M0 ${pad} H${width}`} />
        {threshold !== null && <path className="limit" d={`M0 ${thresholdY} H${width}`} />}
        {series.map((each) => {
          const { line, dots } = drawingOf(each.points, from, to, top);
          return (
            <g key={each.name} className={each.fresh ? 'fresh' : undefined}>
              <path className="line" d={line} />
              <path className="dots" d={dots} />
            </g>
          );
        })}
      </svg>
      <p className="scale">
        <span>0 to {format(top)}</span>
        {threshold !== null && (
          <span>
            {thresholdName} {format(threshold)}
          </span>
        )}
      </p>
      {series.length > 0 && <Values title={title} series={series} format={format} />}
    </figure>
  );
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const rowsShown = 12;

function Values({ title, series, format }: Pick<ChartProps, 'title' | 'series' | 'format'>) {
  const times = series[0]!.points.slice(-rowsShown).map(({ at }) => at);
  const valueAt = (each: Series, at: string) => each.points.find((point) => point.at === at)?.value ?? null;
  return (
    <details>
      <summary>Values</summary>
      <table className="values">
        <caption className="unseen">{title}, latest values</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((at) => (
            <tr key={at}>
              <th scope="row">{clock.format(new Date(at))}</th>
              {series.map((each) => {
                const value = valueAt(each, at);
                return <td key={each.name}>{value === null ? '–' : format(value)}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

/** One decimal below ten, none above. */
const short = (value: number): string => String(value < 10 ? Number(value.toFixed(1)) : Math.round(value));

export const percent = (value: number): string => `${short(value * 100)}%`;
export const milliseconds = (value: number): string => `${short(value)} ms`;
export const perSecond = (value: number): string => `${short(value)}/s`;
