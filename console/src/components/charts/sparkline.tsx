/** The shape of the last hour, without axes: the number stands beside it. */
export function Sparkline({ values, label }: { values: number[]; label: string }) {
  const top = Math.max(...values, 0);
  const points = values.map(
    (value, index) => `${(index * 100) / (values.length - 1)},${top === 0 ? 19 : 19 - (value / top) * 17}`,
  );
  return (
    <svg className="spark" viewBox="-1 0 102 20" role="img" aria-label={label} preserveAspectRatio="none">
      <polyline points={points.join(' ')} vectorEffect="non-scaling-stroke" />
    </svg>
  );
}
