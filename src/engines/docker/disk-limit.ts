// The most that an instance may write to its own file system, where Docker's storage can limit that: overlay2 on XFS with
// project quotas, Btrfs, ZFS. Elsewhere Docker refuses to create such a container, and containers have no limit.
import type { ContainerCreateOptions } from 'dockerode';
import { isErrorResponse } from './client.ts';

export class DiskLimit {
  readonly #size: string;
  #isSupported = true;

  constructor(mb: number) {
    this.#size = `${mb}M`;
  }

  async create(
    options: ContainerCreateOptions,
    create: (options: ContainerCreateOptions) => Promise<unknown>,
  ): Promise<void> {
    if (this.#isSupported) {
      try {
        await create({ ...options, HostConfig: { ...options.HostConfig, StorageOpt: { size: this.#size } } });
        return;
      } catch (error) {
        if (!isErrorResponse(error) || !/storage[- ]?opt|pquota|quota/i.test(error.message)) throw error;
        this.#isSupported = false;
      }
    }
    await create(options);
  }
}
