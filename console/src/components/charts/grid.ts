// Where the horizontal lines of a chart are.

const maxLines = 4;
/** Where a thousand of them have another name, as MiB and GiB do, larger steps are powers of two. */
const binarySteps = Array.from({ length: 12 }, (_, power) => 2 ** (power + 7));

/**
 * Gridlines at 1, 2 or 5 times a power of ten, at most four above zero, up to at least `atLeast`. `unit`: how large one of
 * what they count is.
 */
export function gridOf(max: number | null, atLeast: number, unit: number): { top: number; step: number } {
  const value = Math.max(max ?? 0, atLeast, 1e-9) / unit;
  const power = 10 ** Math.floor(Math.log10(value / maxLines));
  const round = [1, 2, 5, 10].map((each) => each * power);
  const steps = unit > 1 && value > 500 ? binarySteps : round;
  const step = steps.find((each) => value / each <= maxLines + 1e-6) ?? steps.at(-1)!;
  return { top: Math.ceil(value / step - 1e-6) * step * unit, step: step * unit };
}
