import type { Seal } from '../lib/seal.ts';

/** The environment that the variables belong to. */
interface Owner {
  project_id: string;
  name: string;
}

const contextOf = ({ project_id, name }: Owner): string => `variables ${project_id} ${name}`;

/** Opens the variables of an environment, or the copy that one of its revisions keeps. */
export function openSealedVariables(sealed: string | null, owner: Owner, seal: Seal): Record<string, string> {
  return sealed === null ? {} : JSON.parse(seal.open(sealed, contextOf(owner)));
}

export const sealVariables = (variables: Record<string, string>, owner: Owner, seal: Seal): string =>
  seal.seal(JSON.stringify(variables), contextOf(owner));
