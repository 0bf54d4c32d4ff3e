export type Kind =
  | 'list'
  | 'get'
  | 'find'
  | 'create'
  | 'post'
  | 'command'
  | 'update'
  | 'delete'
  | 'deleteWith'
  | 'stream';

/** A method of the client: its kind, its path and its type. */
export interface Operation<F> {
  kind: Kind;
  path: string;
  /** Never set; carries the type of the method. */
  method?: F;
}

export const operation = <F>(kind: Kind, path: string): Operation<F> => ({ kind, path });
