// A Connection header makes the headers that it names hop-by-hop (RFC 9110, 7.6.1): they end at this proxy, in both
// directions. Headers that are hop-by-hop by definition are left out where requests and responses are read.

const plainConnection = /^(?:keep-alive|close|upgrade)?$/i;
export const namesHeaders = (connection: string): boolean => connection !== '' && !plainConnection.test(connection);

/** These say where a message ends and whom it is for, so they stay even where Connection names them. */
const kept = new Set(['host', 'content-length']);

export function removeNamed(headers: string[], connection: string): void {
  const named = new Set(connection.split(',').map((name) => name.trim().toLowerCase()));
  let to = 0;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase();
    if (named.has(name) && !kept.has(name)) continue;
    headers[to++] = headers[i]!;
    headers[to++] = headers[i + 1]!;
  }
  headers.length = to;
}
