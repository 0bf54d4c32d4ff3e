// The first start of an empty catalogue makes its sample streams, behind the running service.
import type { Config } from './config.ts';
import type { Clock } from './lib/clock.ts';
import type { Log } from './lib/log.ts';

export function startSample(config: Config, clock: Clock, log: Log): { stop(): Promise<void> } {
  const abort = new AbortController();
  const running = (async () => {
    // Loaded here, so that a start does not wait for all it takes to make media.
    const { buildSample, needsSample } = await import('./catalogue/sample.ts');
    if (!needsSample(config.catalogueDir)) return;
    const { findSampleFfmpeg } = await import('./catalogue/media/ffmpeg.ts');
    const ffmpeg = await findSampleFfmpeg(config.ffmpeg ?? undefined, config.searchPath ?? undefined);
    await buildSample(config.catalogueDir, { ffmpeg, now: () => new Date(clock.now()), signal: abort.signal });
    log.info({ site: config.catalogueDir }, 'the sample streams are ready');
  })().catch((error) => {
    if (!abort.signal.aborted) log.warn({ err: error }, 'the sample streams could not be made');
  });
  return {
    async stop() {
      abort.abort();
      await running;
    },
  };
}
