// One line of a benchmark: whether its target was met, and what the value is made of.

export function report(name: string, value: string, target: string, met: boolean, of: string): void {
  console.log(`${met ? 'met   ' : 'MISSED'}  ${name.padEnd(52)} ${value.padStart(7)}  (${target})  ${of}`);
}

/** Not compared with a target. */
export function note(name: string, value: string, of = ''): void {
  console.log(`        ${name.padEnd(52)} ${value.padStart(7)}  ${of}`);
}
