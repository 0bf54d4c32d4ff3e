// A chart over time: axes with round values and units, a crosshair that all charts of a page share, marks for what was
// deployed when, and a legend that shows the values under the crosshair and hides lines. Drawn by uPlot.
import { useEffect, useMemo, useRef, useState } from 'react';
import uPlot from 'uplot';
import { useCell } from '../../cell.ts';
import { theme } from '../../theme.ts';
import { gridOf } from './grid.ts';

/** The same revision has the same colour everywhere. */
export type Tone = 'stable' | 'canary' | 'other';

export interface Line {
  name: string;
  tone: Tone;
  values: (number | null)[];
}

export interface Mark {
  /** Seconds since the epoch. */
  at: number;
  text: string;
}

interface TimeChartProps {
  title: string;
  /** Seconds since the epoch, rising. */
  times: number[];
  lines: Line[];
  format(value: number): string;
  /** The scale reaches at least this far, so that noise does not look like a mountain. */
  atLeast: number;
  /** There are no larger values: 100 % of requests. */
  atMost?: number;
  /** How large one of what the axis counts in is: gridlines are round in it. */
  unit?: number;
  marks?: Mark[];
  threshold?: { value: number; name: string } | null;
  /** Charts of the same group share their crosshair. */
  group?: string;
  /** Seconds since the epoch: when that ended which is shown. Without a crosshair the legend has the last values of its time. */
  endedAt?: number | null;
}

const height = 168;
const variables: Record<Tone | 'line' | 'muted' | 'bad' | 'raised', string> = {
  stable: '--stable',
  canary: '--canary',
  other: '--edge',
  line: '--line',
  muted: '--muted',
  bad: '--bad',
  raised: '--raised',
};

const colourOf = (name: keyof typeof variables): string =>
  getComputedStyle(document.documentElement).getPropertyValue(variables[name]).trim();

/** light-dark() is resolved by an element's own style only. */
function coloursOf(element: HTMLElement): Record<keyof typeof variables, string> {
  const found = {} as Record<keyof typeof variables, string>;
  for (const name of Object.keys(variables) as (keyof typeof variables)[]) {
    element.style.color = `var(${variables[name]})`;
    found[name] = getComputedStyle(element).color || colourOf(name);
  }
  element.style.color = '';
  return found;
}

function drawMarks(
  plot: uPlot,
  marks: Mark[],
  threshold: TimeChartProps['threshold'],
  colours: Record<string, string>,
) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.lineWidth = ratio;
  if (threshold) {
    const y = Math.round(plot.valToPos(threshold.value, 'y', true));
    if (y >= bbox.top) {
      ctx.strokeStyle = colours.bad!;
      ctx.fillStyle = colours.bad!;
      ctx.setLineDash([5 * ratio, 4 * ratio]);
      line(ctx, bbox.left, y, bbox.left + bbox.width, y);
      ctx.textAlign = 'end';
      ctx.fillText(threshold.name, bbox.left + bbox.width, y - 4 * ratio);
    }
  }
  ctx.setLineDash([2 * ratio, 3 * ratio]);
  ctx.textAlign = 'start';
  // The newest says what it is where there is no room for all.
  let free = Number.POSITIVE_INFINITY;
  for (const { at, text } of marks.toReversed()) {
    const x = Math.round(plot.valToPos(at, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = colours.canary!;
    line(ctx, x, bbox.top, x, bbox.top + bbox.height);
    const width = ctx.measureText(text).width;
    const start = x + width + 8 * ratio > bbox.left + bbox.width ? x - width - 5 * ratio : x + 5 * ratio;
    if (start + width > free) continue;
    // Lines may cross it.
    ctx.fillStyle = colours.raised!;
    ctx.fillRect(start - 2 * ratio, bbox.top + ratio, width + 4 * ratio, 13 * ratio);
    ctx.fillStyle = colours.muted!;
    ctx.fillText(text, start, bbox.top + 10 * ratio);
    free = Math.min(start, x) - 6 * ratio;
  }
  ctx.restore();
}

function line(ctx: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false });
const seconds = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hour12: false });
const day = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric' });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

const last = (values: (number | null)[]): number | null => values.findLast((value) => value !== null) ?? null;

export function TimeChart({
  title,
  times,
  lines,
  format,
  atLeast,
  atMost = Number.POSITIVE_INFINITY,
  unit = 1,
  marks = [],
  threshold = null,
  group,
  endedAt = null,
}: TimeChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const scheme = useCell(theme);
  const [index, setIndex] = useState<number | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const shape = lines.map(({ name, tone }) => `${name} ${tone}`).join(',');
  const latest = useRef({ marks, threshold, format });
  latest.current = { marks, threshold, format };

  const data = useMemo<uPlot.AlignedData>(() => [times, ...lines.map(({ values }) => values)], [times, lines]);
  const shown = useRef(data);
  shown.current = data;

  // biome-ignore lint/correctness/useExhaustiveDependencies: made anew for other lines or colours; data is set below
  useEffect(() => {
    const element = place.current!;
    let made: uPlot | null = null;
    const make = () => {
      made?.destroy();
      const colours = coloursOf(element);
      const axis = {
        stroke: colours.muted,
        grid: { stroke: colours.line, width: 1 },
        ticks: { show: false },
        font: '11px system-ui, sans-serif',
      };
      made = new uPlot(
        {
          width: Math.max(200, element.clientWidth),
          height,
          // Half a label fits beside the last gridline, and none touches the lowest value.
          padding: [8, 18, 0, 0],
          legend: { show: false },
          cursor: { points: { size: 6 }, drag: { x: false, y: false }, ...(group && { sync: { key: group } }) },
          scales: { y: { range: (_, __, max) => [0, Math.min(atMost, gridOf(max, atLeast, unit).top)] } },
          axes: [
            {
              ...axis,
              grid: { show: false },
              size: 30,
              gap: 9,
              space: 60,
              values: (each, ticks) => {
                const isLong = each.scales.x!.max! - each.scales.x!.min! > 2 * 86_400;
                const isShort = ticks.length > 1 && ticks[1]! - ticks[0]! < 60;
                return ticks.map((tick) => (isLong ? day : isShort ? seconds : clock).format(tick * 1000));
              },
            },
            {
              ...axis,
              size: 58,
              splits: (each) => {
                const { top, step } = gridOf(each.scales.y!.max!, 0, unit);
                return Array.from({ length: Math.round(top / step) + 1 }, (_, line) => line * step);
              },
              values: (_, ticks) => ticks.map((tick) => latest.current.format(tick)),
            },
          ],
          series: [
            {},
            ...lines.map(({ name, tone }) => ({
              label: name,
              stroke: colours[tone],
              width: 1.8,
              spanGaps: false,
              show: !hidden.has(name),
              points: {
                size: 6,
                fill: colours[tone],
                filter: (each: uPlot, at: number, isShown: boolean) => (isShown ? null : alone(each.data[at]!)),
              },
            })),
          ],
          hooks: {
            draw: [(each) => drawMarks(each, latest.current.marks, latest.current.threshold, colours)],
            setCursor: [(each) => setIndex(each.cursor.idx ?? null)],
          },
        },
        shown.current,
        element,
      );
      plot.current = made;
    };
    make();
    const resized = new ResizeObserver(() => {
      if (made && element.clientWidth > 0 && made.width !== element.clientWidth) {
        made.setSize({ width: element.clientWidth, height });
      }
    });
    resized.observe(element);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', make);
    return () => {
      resized.disconnect();
      dark.removeEventListener('change', make);
      made?.destroy();
      plot.current = null;
    };
  }, [shape, scheme, group]);

  useEffect(() => {
    plot.current?.setData(data);
  }, [data]);

  const toggle = (name: string, at: number) => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
    plot.current?.setSeries(at + 1, { show: !next.has(name) });
  };
  const later = endedAt === null ? -1 : times.findIndex((at) => at > endedAt);
  const lastValue = ({ values }: Line) => last(later === -1 ? values : values.slice(0, later));
  const shownValue = (each: Line) => (index === null ? lastValue(each) : (each.values[index] ?? null));
  const summary = lines.map((each) => {
    const value = lastValue(each);
    return `${each.name} ${value === null ? 'no value' : format(value)}`;
  });
  return (
    <figure className="time-chart card">
      <figcaption>
        <strong>{title}</strong>
        <span className="at">
          {index !== null && times[index] !== undefined ? exact.format(times[index] * 1000) : ''}
        </span>
        <span className="legend">
          {lines.map((each, at) => {
            const value = shownValue(each);
            return (
              <button
                key={each.name}
                type="button"
                className={`bare ${each.tone}`}
                aria-pressed={!hidden.has(each.name)}
                title={hidden.has(each.name) ? `Show ${each.name}` : `Hide ${each.name}`}
                onClick={() => toggle(each.name, at)}
              >
                {each.name} <b>{value === null ? '–' : format(value)}</b>
              </button>
            );
          })}
        </span>
      </figcaption>
      <div
        ref={place}
        className="plot"
        role="img"
        aria-label={`${title} over time. Latest: ${summary.join(', ') || 'nothing'}`}
      />
    </figure>
  );
}

/** Values without neighbours: no line leads to them, so they are drawn as points. */
function alone(values: ArrayLike<number | null | undefined>): number[] | null {
  const found: number[] = [];
  for (let at = 0; at < values.length; at++) {
    if (values[at] != null && values[at - 1] == null && values[at + 1] == null) found.push(at);
  }
  return found.length === 0 ? null : found;
}
