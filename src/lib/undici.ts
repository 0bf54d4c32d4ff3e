// The parts of undici that the service uses from its start. With the others (fetch, mocks, caches), which the package's own
// entry loads too, each process would start later and hold 13 MiB more.
import buildConnector from 'undici/lib/core/connect.js';
import Agent from 'undici/lib/dispatcher/agent.js';

export { Agent, buildConnector };
