// What the control process and the process of the stand-in's instances send each other: a POST for each call.
import type { Engine, EngineFault } from '../engine.ts';

export interface StandinCall {
  /** Those that share a data directory do not see each other's instances. */
  installation: string;
  method: keyof Pick<Engine, 'start' | 'list' | 'stop' | 'logs'>;
  args: unknown[];
}

export type StandinAnswer = { result: unknown } | { fault: EngineFault; message: string };
