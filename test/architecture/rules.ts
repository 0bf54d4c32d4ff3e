// The rules of the house over a graph of imports, without reading files: each gives what breaks it.

/** File → the files it imports, types included. Paths start with src/. */
export type Imports = Map<string, string[]>;

/** `lib ← contract ← db, engines` as [['lib'], ['contract'], ['db', 'engines']]. */
export const readOrder = (line: string): string[][] =>
  line.split('←').map((level) => level.split(',').map((name) => name.trim()));

/** The folder below src, or the file itself where it lies directly in src. */
export const roomOf = (path: string): string => path.split('/')[1]!;

/** Imports between rooms of the order that do not point to its left. Rooms on one level do not know each other. */
export function againstOrder(imports: Imports, order: string[][]): string[] {
  const level = new Map(order.flatMap((rooms, index) => rooms.map((room) => [room, index] as const)));
  return edges(imports).flatMap(([from, to]) => {
    const [a, b] = [level.get(roomOf(from)), level.get(roomOf(to))];
    if (a === undefined || b === undefined || roomOf(from) === roomOf(to)) return [];
    return b < a ? [] : [`${from} imports ${to}`];
  });
}

/** Groups of nodes that reach each other. */
export function circles(imports: Imports): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (node: string) => {
    index.set(node, index.size);
    low.set(node, index.get(node)!);
    stack.push(node);
    for (const next of imports.get(node) ?? []) {
      if (!index.has(next)) visit(next);
      if (stack.includes(next)) low.set(node, Math.min(low.get(node)!, low.get(next)!));
    }
    if (low.get(node) !== index.get(node)) return;
    const circle = stack.splice(stack.indexOf(node));
    if (circle.length > 1) found.push(circle.sort());
  };
  for (const node of imports.keys()) if (!index.has(node)) visit(node);
  return found;
}

/** The same graph with rooms in place of files. */
export function betweenRooms(imports: Imports): Imports {
  const rooms: Imports = new Map();
  for (const [from, to] of edges(imports)) {
    if (roomOf(from) === roomOf(to)) continue;
    rooms.set(roomOf(from), [...(rooms.get(roomOf(from)) ?? []), roomOf(to)]);
  }
  return rooms;
}

export const edges = (imports: Imports): [string, string][] =>
  [...imports].flatMap(([from, targets]) => targets.map((to): [string, string] => [from, to]));
