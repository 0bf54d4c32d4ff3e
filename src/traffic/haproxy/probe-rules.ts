// Health checks of load balancers and kubelets, answered as proxy/probe.ts answers them. To come after the look-up of the
// route: an address may be a host that is routed.
import { addressPattern, probePaths } from '../proxy/probe.ts';

export function probeRules(): string[] {
  const answer = (status: number, text: string, condition: string) =>
    `    http-request return status ${status} content-type "text/plain; charset=utf-8" string "${text}\\n" ` +
    `hdr cache-control no-store if !has_route by_address !{ ssl_fc } { method GET HEAD } ${condition}`;
  return [
    `    acl by_address var(txn.host) -m reg ${addressPattern}`,
    '    acl has_route var(txn.route) -m found',
    answer(503, 'stopping', `{ path ${probePaths.ready} } { stopping }`),
    answer(200, 'ok', `{ path ${probePaths.live} ${probePaths.ready} }`),
  ];
}
