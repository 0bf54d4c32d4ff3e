// The traffic split, drawn as water that passes a gate and leaves through channels as wide as the shares.
export interface Share {
  revision: string;
  percent: number;
  /** Shown beside its name. */
  role: string;
  /** Drawn in the colour of a new revision. */
  fresh: boolean;
}

const width = 1000;
const height = 100;
const gap = 12;
/** So that one percent is still visible. */
const minThickness = 3;
const gateAt = 260;
const partedAt = 540;

interface Channel extends Share {
  inTop: number;
  inBottom: number;
  outTop: number;
  outBottom: number;
}

function channelsOf(shares: Share[]): Channel[] {
  const open = shares.filter(({ percent }) => percent > 0);
  const room = height - gap * (open.length - 1);
  const total = open.reduce((sum, { percent }) => sum + percent, 0);
  const widths = open.map(({ percent }) => Math.max(minThickness, (percent / total) * room));
  const scale = room / widths.reduce((sum, each) => sum + each, 0);
  let inTop = gap * (open.length - 1) * 0.5;
  let outTop = 0;
  return open.map((share, index) => {
    const thick = widths[index]! * scale;
    const channel = { ...share, inTop, inBottom: inTop + thick, outTop, outBottom: outTop + thick };
    inTop += thick;
    outTop += thick + gap;
    return channel;
  });
}

/** Before the gate the channels touch; behind it they part in a smooth curve. */
function heightAt(x: number, before: number, behind: number): number {
  const progress = Math.min(1, Math.max(0, (x - gateAt) / (partedAt - gateAt)));
  return before + (behind - before) * progress * progress * (3 - 2 * progress);
}

const along = (step: number): number[] => Array.from({ length: width / step + 1 }, (_, index) => index * step);
const lineThrough = (points: [x: number, y: number][]): string =>
  `M${points.map(([x, y]) => `${x} ${y.toFixed(1)}`).join('L')}`;

function pathOf({ inTop, inBottom, outTop, outBottom }: Channel): string {
  const behindGate = along(20).filter((x) => x >= gateAt);
  const top = behindGate.map((x): [number, number] => [x, heightAt(x, inTop, outTop)]);
  const bottom = behindGate.map((x): [number, number] => [x, heightAt(x, inBottom, outBottom)]);
  return `${lineThrough([...top, ...bottom.reverse()])}Z`;
}

/** As many ripples as there is space for. */
function ripplesOf({ inTop, inBottom, outTop, outBottom }: Channel): string[] {
  const thick = inBottom - inTop;
  const count = thick > 70 ? 3 : thick > 30 ? 2 : 1;
  return Array.from({ length: count }, (_, index) => {
    const depth = (index + 1) / (count + 1);
    const reach = Math.min(4, thick / 7);
    const behindGate = along(10).filter((x) => x >= gateAt);
    const points = behindGate.map((x): [number, number] => {
      const middle = heightAt(x, inTop + depth * thick, outTop + depth * (outBottom - outTop));
      return [x, middle + reach * Math.sin(x / 26 + index * 2.1)];
    });
    return lineThrough(points);
  });
}

export function SplitBar({ shares }: { shares: Share[] }) {
  const channels = channelsOf(shares);
  const label = channels.map(({ revision, percent, role }) => `${revision} (${role}) ${percent}%`).join(', ');
  return (
    <div className="split">
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={channels.length === 0 ? 'No traffic: there is no live revision' : `Traffic: ${label}`}
      >
        {channels.length === 0 && <rect className="dry" x="0" y="0" width={width} height={height} />}
        {channels.map((channel) => (
          <g key={channel.revision} className={channel.fresh ? 'channel fresh' : 'channel'}>
            <path className="water" d={pathOf(channel)} />
            {ripplesOf(channel).map((ripple, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: ripples have no identity besides their order
              <path key={index} className="ripple" d={ripple} />
            ))}
          </g>
        ))}
        {channels.length > 0 && <rect className="still" x="0" y="0" width={gateAt} height={height} />}
        <path className="gate" d={`M${gateAt} -10 V${height + 10}`} />
      </svg>
      <ul className="split-legend">
        {channels.length === 0 && <li className="dry">No live revision yet</li>}
        {channels.map(({ revision, percent, role, fresh }) => (
          <li key={revision} className={fresh ? 'fresh' : undefined}>
            <strong>{percent} %</strong> {revision} <span>{role}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface Split {
  active_revision: string | null;
  traffic: { revision: string; percent: number }[];
}

/** The shares of an environment's traffic; a revision that is not the active one is a canary. */
export function sharesOf({ active_revision, traffic }: Split): Share[] {
  const all = traffic.map(({ revision, percent }) => {
    const isActive = revision === active_revision || traffic.length === 1;
    return { revision, percent, role: isActive ? 'live' : 'canary', fresh: !isActive };
  });
  return all.sort((a, b) => Number(a.fresh) - Number(b.fresh));
}
