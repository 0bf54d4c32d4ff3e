export type Kind = 'list' | 'get' | 'find' | 'create' | 'post' | 'command' | 'update' | 'delete' | 'stream';

/** A method of the client: what it asks for, and its type. */
export interface Operation<F> {
  kind: Kind;
  path: string;
  /** Never there: carries the type. */
  method?: F;
}

export const operation = <F>(kind: Kind, path: string): Operation<F> => ({ kind, path });
