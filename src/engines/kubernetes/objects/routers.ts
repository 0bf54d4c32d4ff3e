// SLUICE_KUBERNETES_ROUTERS: where visitors' requests come from.
import { parseRange, type Range } from '../../../lib/address.ts';
import { invalid } from '../../../lib/setting-parsers.ts';

/** Machines by their addresses, or pods by their namespace and, unless all of it count, a label. */
export type Routers = { range: Range } | { namespace: string; labels: Record<string, string> };

const podsOf = /^([a-z0-9-]{1,63}):(?:([\w./-]{1,120})=([\w.-]{1,63}))?$/;

export function parseRouters(value: string): Routers[] {
  return value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
    .map((item) => {
      const range = parseRange(item);
      if (range) return { range };
      const [, namespace, label, text = ''] = podsOf.exec(item) ?? [];
      if (namespace === undefined)
        return invalid(`"${item}" is neither a range such as 10.0.0.0/8 nor pods: namespace:label=value`);
      return { namespace, labels: label === undefined ? {} : { [label]: text } };
    });
}
