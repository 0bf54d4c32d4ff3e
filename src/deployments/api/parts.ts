import type { EnvironmentKey } from '../../environments/key.ts';
import type { CreateParts } from './create.ts';

export interface DeploymentParts extends CreateParts {
  /** The reconciler has something to do in this environment. */
  kick(key: EnvironmentKey): void;
}
