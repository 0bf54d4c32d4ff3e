// The first start of an empty catalogue makes its sample streams, behind the running service.
import { findFfmpeg } from './catalogue/media/ffmpeg.ts';
import { buildSample, needsSample } from './catalogue/sample.ts';
import type { Config } from './config.ts';
import type { Clock } from './lib/clock.ts';
import type { Log } from './lib/log.ts';

export function startSample(config: Config, clock: Clock, log: Log): { stop(): Promise<void> } {
  if (!needsSample(config.catalogueDir)) return { stop: async () => {} };
  const abort = new AbortController();
  const running = (async () => {
    const ffmpeg = await findFfmpeg(config.ffmpeg ?? undefined, config.searchPath ?? undefined);
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
