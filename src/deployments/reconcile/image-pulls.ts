// Images being pulled. No pass waits for a pull: it asks what is known so far. A pull that failed for a reason that may
// pass is retried with backoff; a registry that cannot be reached is retried only once.
import { imageIdOf, pinImage } from '../../contract/references.ts';
import type { Db } from '../../db/database.ts';
import { EngineError, type PreparedImage } from '../../engines/engine.ts';
import { type EnvironmentKey, keyOf, keyText } from '../../environments/environment-key.ts';
import { openVariables } from '../../environments/revision-settings.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Seal } from '../../lib/seal.ts';
import type { RegionState } from '../../regions/regions.ts';
import type { RegistryLogins } from '../../registries/registry-logins.ts';
import type { DeploymentRow, RevisionRow } from '../deployment-queries.ts';
import { isDiskFull } from '../image-collector.ts';
import type { Failure } from '../rules/rollout.ts';

type Known = PreparedImage | Failure | { trouble: Failure } | null;

/** A registry that cannot be reached twice in a row is not expected to come back by itself. */
const unreachableAfter = 2;

interface Pull {
  deployment: string;
  isRunning: boolean;
  known: Known;
  failures: number;
  /** How many of the latest of them found no way to the registry. */
  unreachable: number;
  /** When it is tried again; never once its outcome is final. */
  nextAt: number;
}

interface ImagePullParts {
  db: Db;
  logins: RegistryLogins;
  seal: Seal;
  log: Log;
  clock: Clock;
  random: () => number;
  /** Whether the account may use images that are on the machine of an engine and were not pulled for it. */
  mayUseLocal?(accountId: string): Promise<boolean>;
  /** The image did not fit on the disk of the region. */
  onDiskFull?(region: string): void;
  /** Why the registry of this image may not be asked; null: it may. */
  refuseRegistry?(image: string): Promise<string | null>;
}

export class ImagePulls {
  /** By environment: the latest deployment's. */
  readonly #pulls = new Map<string, Pull>();
  readonly #parts: ImagePullParts;
  readonly #onKnown: (key: EnvironmentKey) => void;

  constructor(parts: ImagePullParts, onKnown: (key: EnvironmentKey) => void) {
    this.#parts = parts;
    this.#onKnown = onKnown;
  }

  /** What is known of the image so far. Starts a pull if one is due. */
  check(deployment: DeploymentRow, revision: RevisionRow, region: RegionState | undefined): Known {
    const key = keyOf(deployment);
    const pull = this.#find(key, deployment.id);
    const isDue = !pull.isRunning && this.#parts.clock.now() >= pull.nextAt;
    if (isDue && region?.available) void this.#pull(key, pull, deployment, revision, region);
    return pull.known;
  }

  forget(key: EnvironmentKey): void {
    this.#pulls.delete(keyText(key));
  }

  #find(key: EnvironmentKey, deployment: string): Pull {
    const known = this.#pulls.get(keyText(key));
    if (known?.deployment === deployment) return known;
    const pull: Pull = { deployment, isRunning: false, known: null, failures: 0, unreachable: 0, nextAt: 0 };
    this.#pulls.set(keyText(key), pull);
    return pull;
  }

  async #pull(
    key: EnvironmentKey,
    pull: Pull,
    { image, digest, project_id, environment, pull: wanted, account_id }: DeploymentRow,
    { variables_sealed }: RevisionRow,
    { name, engine }: RegionState,
  ): Promise<void> {
    pull.isRunning = true;
    try {
      const variables = await openVariables(
        this.#parts.db,
        variables_sealed,
        { project_id, name: environment },
        this.#parts.seal,
      );
      // A rollback knows the digest that ran; the tag may point to another image by now.
      const reference = digest === null ? image : pinImage(image, digest);
      if (engine.kind !== 'standin' && (digest === null || imageIdOf(digest) === null)) await this.#refuse(image);
      const login = await this.#parts.logins.find(project_id, image);
      const mayBeLocal =
        digest === null && wanted === 'missing' && (await this.#parts.mayUseLocal?.(account_id)) === true;
      pull.known = await engine.prepare(reference, variables, { login, isKnown: digest !== null, mayBeLocal });
      pull.nextAt = Number.POSITIVE_INFINITY;
    } catch (error) {
      if (isDiskFull(error)) this.#parts.onDiskFull?.(name);
      this.#failed(pull, error);
    } finally {
      pull.isRunning = false;
      this.#onKnown(key);
    }
  }

  async #refuse(image: string): Promise<void> {
    const reason = await this.#parts.refuseRegistry?.(image);
    if (reason) throw new EngineError('image_denied', reason);
  }

  #failed(pull: Pull, error: unknown): void {
    const { clock, log, random } = this.#parts;
    const fault = error instanceof EngineError ? error.fault : 'unavailable';
    const reason = (error as Error).message.trim().replace(/\.$/, '').slice(0, 500);
    if (fault === 'image_not_found' || fault === 'image_denied') {
      pull.known = { code: fault, message: reason };
      pull.nextAt = Number.POSITIVE_INFINITY;
      log.info({ err: error, deployment: pull.deployment }, 'the image is not given out');
      return;
    }
    const trouble = pullTrouble(fault, reason);
    pull.failures++;
    pull.unreachable = fault === 'registry_unreachable' ? pull.unreachable + 1 : 0;
    if (pull.unreachable >= unreachableAfter) {
      pull.known = { ...trouble, message: `${trouble.message} ${reachRemedy}` };
      pull.nextAt = Number.POSITIVE_INFINITY;
      return;
    }
    pull.known = { trouble };
    const waitMs = pullRetryMs(pull.failures, random());
    pull.nextAt = clock.now() + waitMs;
    const { deployment, failures } = pull;
    log.warn({ err: error, deployment, failures, retryInMs: waitMs }, 'the image could not be pulled; trying again');
  }
}

const reachRemedy =
  'Check the name of the registry in the image, and that the machine of the engine can reach it; then deploy again.';

function pullTrouble(fault: EngineError['fault'], reason: string): Failure {
  switch (fault) {
    case 'registry_unreachable':
      return { code: 'registry_unreachable', message: `The registry cannot be reached: ${reason}.` };
    case 'registry_failing':
      return { code: 'registry_unreachable', message: `The registry does not answer as it should: ${reason}.` };
    case 'registry_rate_limited':
      return { code: 'registry_unreachable', message: `The registry refuses more pulls for now: ${reason}.` };
    default:
      return { code: 'deadline_exceeded', message: `The image could not be pulled: ${reason}.` };
  }
}

const firstWaitMs = 2_000;
const longestWaitMs = 120_000;
const jitter = 0.2;

/**
 * The backoff after this many failures in a row. ± 20 %, so that deployments waiting for the same registry do not all
 * retry at once; `random` is from 0 to 1.
 */
export function pullRetryMs(failures: number, random: number): number {
  const waitMs = Math.min(longestWaitMs, firstWaitMs * 2 ** (failures - 1));
  return Math.round(waitMs * (1 - jitter + 2 * jitter * random));
}
