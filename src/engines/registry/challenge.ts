// What a registry wants to see (WWW-Authenticate, RFC 9110 and the distribution specification).

export type Challenge =
  | { scheme: 'basic' }
  | { scheme: 'bearer'; realm: string; service: string | null; scope: string | null };

const parameter = /([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi;

/** The ones that are understood; Bearer first, which registries that offer both prefer. */
export function parseChallenges(header: string): Challenge[] {
  const starts = [...header.matchAll(/(?:^|,)\s*(basic|bearer)(?=\s|$|,)/gi)];
  const found = starts.flatMap((start, index): Challenge[] => {
    if (start[1]!.toLowerCase() === 'basic') return [{ scheme: 'basic' }];
    const given = parametersOf(header.slice(start.index + start[0].length, starts[index + 1]?.index));
    const realm = given.get('realm');
    if (realm === undefined) return [];
    return [{ scheme: 'bearer', realm, service: given.get('service') ?? null, scope: given.get('scope') ?? null }];
  });
  return found.sort((a, b) => Number(a.scheme === 'basic') - Number(b.scheme === 'basic'));
}

function parametersOf(text: string): Map<string, string> {
  return new Map(
    [...text.matchAll(parameter)].map(([, name, quoted, bare]) => [
      name!.toLowerCase(),
      quoted?.replace(/\\(.)/g, '$1') ?? bare!,
    ]),
  );
}
