// What the control process and the process of the stand-in's instances send each other: a POST for each call,
// whose answer is JSON, or, to `follow`, the lines themselves.
import type { EngineFault } from '../engine.ts';
import type { StandinEngine } from './standin.ts';

export interface StandinCall {
  /** Those that share a data directory do not see each other's instances. */
  installation: string;
  method: keyof Pick<StandinEngine, 'start' | 'list' | 'end' | 'stop' | 'logs' | 'follow'>;
  args: unknown[];
}

export type StandinAnswer = { result: unknown } | { fault: EngineFault; message: string };
