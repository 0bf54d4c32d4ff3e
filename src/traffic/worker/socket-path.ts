import { join } from 'node:path';
import { socketPathIn } from '../../lib/socket-path.ts';

/** Where the agent listens for its workers. */
export const agentSocketPath = (dataDir: string): string => socketPathIn(join(dataDir, 'routing'), 'agent.sock');
