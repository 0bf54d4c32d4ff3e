// The first start of an empty catalogue publishes its sample streams, behind the running service.
import type { Config } from './config.ts';
import type { Clock } from './lib/clock.ts';
import type { Log } from './lib/log.ts';

export function startSample(config: Config, clock: Clock, log: Log): { stop(): Promise<void> } {
  const running = (async () => {
    // Loaded here, so that a start does not wait for it.
    const { needsSample, placeSample } = await import('./catalogue/sample.ts');
    if (!needsSample(config.catalogueDir)) return;
    await placeSample(config.catalogueDir, () => new Date(clock.now()));
    log.info({ site: config.catalogueDir }, 'the sample streams are ready');
  })().catch((error) => {
    log.warn({ err: error }, 'the sample streams could not be published');
  });
  return { stop: () => running };
}
