// What runs instances. Everything above the engines sees this interface only.

export type EngineKind = 'standin' | 'docker' | 'kubernetes';

export interface Engine {
  readonly kind: EngineKind;
  /** Resolves while the engine answers, rejects with the reason while it does not. */
  probe(): Promise<void>;
  close(): Promise<void>;
}
