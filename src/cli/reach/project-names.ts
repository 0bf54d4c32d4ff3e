import type { Sluice } from '../../client/index.ts';

/** Slugs of projects, looked up once each; the id where that is not allowed or the project is gone. */
export function projectNames(sluice: Sluice): (id: string | null | undefined) => Promise<string> {
  const known = new Map<string, Promise<string>>();
  return (id) => {
    if (!id) return Promise.resolve('-');
    const asked =
      known.get(id) ??
      sluice.projects.get(id).then(
        ({ slug }) => slug,
        () => id,
      );
    known.set(id, asked);
    return asked;
  };
}
