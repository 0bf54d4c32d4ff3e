// Which ports instances get. No I/O.

export interface PortRange {
  first: number;
  last: number;
}

const sizeOf = ({ first, last }: PortRange): number => last - first + 1;

export const isWithin = ({ first, last }: PortRange, port: number): boolean => first <= port && port <= last;

/**
 * The ports of the range go round: those after the one that was given last come first, so that one that was given back
 * comes as late as possible. Fewer than asked for where there are no more.
 */
export function nextPorts(range: PortRange, given: number, taken: ReadonlySet<number>, count: number): number[] {
  const start = isWithin(range, given) ? given - range.first + 1 : 0;
  const ports: number[] = [];
  for (let step = 0; step < sizeOf(range) && ports.length < count; step++) {
    const port = range.first + ((start + step) % sizeOf(range));
    if (!taken.has(port)) ports.push(port);
  }
  return ports;
}
