// Follows Docker's stream of events: an instance that ended is noticed at once, and so is a restart of Docker, which cuts
// the stream.
import type { Readable } from 'node:stream';
import type { EngineChange } from '../engine.ts';
import type { DockerClient } from './client.ts';
import { labelFilter, ownerOf } from './container.ts';
import { jsonLines } from './json-lines.ts';

const retryMs = 500;

interface ContainerEvent {
  Actor?: { Attributes?: Record<string, string> };
}

export function watchEvents(
  { docker, timeouts, closing }: DockerClient,
  installation: string,
  onChange: (change: EngineChange) => void,
): () => void {
  const ended = new AbortController();
  const filters = { type: ['container' as const], event: ['die'], label: [labelFilter(installation)] };
  let timer: NodeJS.Timeout | null = null;
  let wasCut = false;

  const follow = async () => {
    const connecting = new AbortController();
    const giveUp = setTimeout(() => connecting.abort(), timeouts.read);
    const abortSignal = AbortSignal.any([ended.signal, closing, connecting.signal]);
    try {
      const stream = (await docker.getEvents({ filters, abortSignal })) as Readable;
      clearTimeout(giveUp);
      if (wasCut) onChange(null);
      wasCut = true;
      for await (const event of jsonLines<ContainerEvent>(stream)) onChange(ownerOf(event.Actor?.Attributes ?? {}));
    } finally {
      clearTimeout(giveUp);
    }
  };
  const again = async () => {
    // Why it was cut does not matter: availability is measured elsewhere.
    await follow().catch(() => {});
    if (!ended.signal.aborted && !closing.aborted) timer = setTimeout(() => void again(), retryMs).unref();
  };
  void again();
  return () => {
    ended.abort();
    if (timer) clearTimeout(timer);
  };
}
