// What notices that something is wrong: the watcher of the alert rules, and the figures that others watch.
import { Figures } from '../alerts/figures.ts';
import { alertRoutes } from '../alerts/routes.ts';
import { Watcher } from '../alerts/watcher.ts';
import type { Config } from '../config.ts';
import type { ServedRoute } from '../http/api/route.ts';
import type { Measurement } from '../traffic/measure/measurements.ts';
import type { Common } from './common.ts';

export interface Alerts {
  routes: ServedRoute[];
  /** What a router of this process saw. */
  measured(router: string, measurements: Measurement[]): void;
  /** For Prometheus. */
  figures(): Promise<string>;
  start(): void;
  stop(): Promise<void>;
}

export function createAlerts(common: Common, config: Config): Alerts {
  const figures = new Figures(common);
  const watcher = new Watcher(common);
  return {
    routes: alertRoutes(common),
    measured: (router, measurements) => figures.note(router, measurements),
    figures: () => figures.text(),
    start() {
      if (config.roles.includes('worker')) watcher.start();
    },
    stop: () => watcher.stop(),
  };
}
