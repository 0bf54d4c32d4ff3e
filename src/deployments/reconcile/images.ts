// Images being made ready. The engine is asked once per deployment and takes its time; a look asks what is known by now.
import { pinImage } from '../../contract/image-reference.ts';
import { EngineError } from '../../engines/engine.ts';
import { openSealedVariables } from '../../environments/change.ts';
import type { EnvironmentKey } from '../../environments/key.ts';
import type { Log } from '../../lib/log.ts';
import type { Seal } from '../../lib/seal.ts';
import type { RegionState } from '../../regions/regions.ts';
import type { DeploymentRow, RevisionRow } from '../queries.ts';
import type { Observed } from '../rules/rollout.ts';

type Known = Observed['image'];

export class Images {
  readonly #known = new Map<string, Known>();
  readonly #seal: Seal;
  readonly #log: Log;
  readonly #onKnown: (key: EnvironmentKey) => void;

  constructor({ seal, log }: { seal: Seal; log: Log }, onKnown: (key: EnvironmentKey) => void) {
    this.#seal = seal;
    this.#log = log;
    this.#onKnown = onKnown;
  }

  /** What is known of the image so far; asks the engine the first time, and again if it could not be asked. */
  look(deployment: DeploymentRow, revision: RevisionRow, region: RegionState | undefined): Known {
    const { id, project_id, environment } = deployment;
    if (this.#known.has(id)) return this.#known.get(id)!;
    if (!region?.available) return null;
    this.#known.set(id, null);
    const variables = openSealedVariables(revision.variables_sealed, { project_id, name: environment }, this.#seal);
    // A rollback knows the digest that ran; the tag may point to another image by now.
    const image = deployment.digest === null ? deployment.image : pinImage(deployment.image, deployment.digest);
    region.engine
      .prepare(image, variables)
      .then(
        (prepared) => this.#known.set(id, prepared),
        (error) => this.#failed(id, error),
      )
      .finally(() => this.#onKnown({ projectId: project_id, environment }));
    return null;
  }

  forget({ id }: DeploymentRow): void {
    this.#known.delete(id);
  }

  #failed(id: string, error: unknown): void {
    const fault = error instanceof EngineError ? error.fault : 'unavailable';
    if (fault === 'image_not_found' || fault === 'image_denied') {
      this.#known.set(id, { code: fault, message: (error as Error).message.slice(0, 500) });
    } else {
      this.#log.warn({ err: error, deployment: id }, 'the image could not be made ready; trying again');
      this.#known.delete(id);
    }
  }
}
