// Images being pulled. The engine is asked once per deployment and takes its time; a look asks what is known so far.
import { pinImage } from '../../contract/image-reference.ts';
import { EngineError } from '../../engines/engine.ts';
import { openSealedVariables } from '../../environments/change.ts';
import { type EnvironmentKey, keyOf, keyText } from '../../environments/key.ts';
import type { Log } from '../../lib/log.ts';
import type { Seal } from '../../lib/seal.ts';
import type { RegionState } from '../../regions/regions.ts';
import type { DeploymentRow, RevisionRow } from '../queries.ts';
import type { Observed } from '../rules/rollout.ts';

type Known = Observed['image'];

interface Pull {
  deployment: string;
  known: Known;
}

export class Images {
  /** By environment: the latest deployment's. */
  readonly #pulls = new Map<string, Pull>();
  readonly #seal: Seal;
  readonly #log: Log;
  readonly #onKnown: (key: EnvironmentKey) => void;

  constructor({ seal, log }: { seal: Seal; log: Log }, onKnown: (key: EnvironmentKey) => void) {
    this.#seal = seal;
    this.#log = log;
    this.#onKnown = onKnown;
  }

  /** What is known of the image so far; asks the engine the first time, and again if it did not answer. */
  look(deployment: DeploymentRow, revision: RevisionRow, region: RegionState | undefined): Known {
    const { id, project_id, environment } = deployment;
    const key = keyOf(deployment);
    const begun = this.#pulls.get(keyText(key));
    if (begun?.deployment === id) return begun.known;
    if (!region?.available) return null;
    const pull: Pull = { deployment: id, known: null };
    this.#pulls.set(keyText(key), pull);
    const variables = openSealedVariables(revision.variables_sealed, { project_id, name: environment }, this.#seal);
    // A rollback knows the digest that ran; the tag may point to another image by now.
    const image = deployment.digest === null ? deployment.image : pinImage(deployment.image, deployment.digest);
    region.engine
      .prepare(image, variables)
      .then(
        (prepared) => {
          pull.known = prepared;
        },
        (error) => this.#failed(key, pull, error),
      )
      .finally(() => this.#onKnown(key));
    return null;
  }

  forget(key: EnvironmentKey): void {
    this.#pulls.delete(keyText(key));
  }

  #failed(key: EnvironmentKey, pull: Pull, error: unknown): void {
    const fault = error instanceof EngineError ? error.fault : 'unavailable';
    if (fault === 'image_not_found' || fault === 'image_denied') {
      pull.known = { code: fault, message: (error as Error).message.slice(0, 500) };
      return;
    }
    this.#log.warn({ err: error, deployment: pull.deployment }, 'the image could not be pulled; trying again');
    if (this.#pulls.get(keyText(key)) === pull) this.forget(key);
  }
}
