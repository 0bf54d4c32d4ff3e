// The built-in proxy in this process as a data plane: one router, which lives and ends with the control plane.
import type { DataPlane, RouterObserver, RouterState } from './data-plane.ts';
import type { BuiltInProxy, ListenAt } from './proxy/proxy.ts';

interface InProcessOptions {
  id: string;
  proxy: BuiltInProxy;
  http: ListenAt;
  tls: ListenAt | null;
  expireCertificates(names: string[] | null): void;
}

export function inProcessPlane({ id, proxy, http, tls, expireCertificates }: InProcessOptions): DataPlane {
  const state: RouterState = { id, version: 0 };
  let observer: RouterObserver | null = null;
  let stopped = false;
  const moveTo = (version: number) => {
    state.version = version;
    observer?.moved();
  };
  return {
    observe(routerObserver) {
      observer = routerObserver;
    },
    async load(version, batches) {
      if (state.version === 0) await observer?.joining(state);
      proxy.routes.beginLoad();
      for await (const batch of batches) for (const routes of batch) proxy.routes.replace(routes);
      proxy.routes.endLoad();
      moveTo(version);
    },
    change(version, environments) {
      for (const routes of environments) proxy.routes.replace(routes);
      moveTo(version);
    },
    listen: () => proxy.listen(http, tls),
    routers: () => (stopped ? [] : [{ ...state }]),
    takeMeasurements() {
      const taken = proxy.counter.take();
      return taken ? [{ router: id, ...taken }] : [];
    },
    expireCertificates,
    setTicketKey: (key) => proxy.setTicketKey(key),
    async stop(drainMs) {
      await proxy.stop(drainMs);
      stopped = true;
      observer?.left(id);
    },
  };
}
