import { Type } from 'typebox';
import { Choice, declareList, Id, Int, Nullable, type Of, Shape, Text, Time } from './declare.ts';
import { RevisionId } from './deployments.ts';
import { environmentParams } from './environments.ts';

const instanceStates = ['pending', 'starting', 'healthy', 'unhealthy', 'draining', 'ended'] as const;

const endReasons = ['exited', 'out_of_memory', 'killed', 'not_found', 'evicted'] as const;
export type EndReason = (typeof endReasons)[number];

const Instance = Shape(
  {
    id: Id('ins', 'The instance.'),
    revision: RevisionId,
    state: Choice(
      instanceStates,
      '`pending`: its engine does not run it yet; `starting`: it runs and was not healthy so far; `draining`: it gets no ' +
        'new requests and is stopped soon; `ended`: it ended although it should have run.',
    ),
    restarts: Int(
      0,
      Number.MAX_SAFE_INTEGER,
      'How many instances in a row ended by themselves in its place. One that ran for five minutes starts at 0 again.',
    ),
    started_at: Nullable(Time('When it was first seen to run.')),
    ended: Nullable(
      Shape({
        at: Time('When.'),
        exit_code: Nullable(Int(0, 2 ** 31 - 1, 'Of the program; null: not known.')),
        reason: Choice(
          endReasons,
          '`exited`: the program ended or could not be started; `out_of_memory`; `killed`: by a signal, or by the ' +
            'service because it did not become healthy in time; `not_found`: its engine does not know it any more; ' +
            '`evicted`: its engine or node ended it.',
        ),
      }),
    ),
    node: Nullable(Text(253, 'The machine it runs on; null: not known.')),
    last_check: Nullable(
      Shape(
        {
          at: Time('When.'),
          ok: Type.Boolean({ description: 'Whether it passed.' }),
          message: Text(2000, 'What it answered, or why it did not.'),
        },
        { description: 'Its latest health check, as of up to half a minute ago.' },
      ),
    ),
  },
  { $id: 'Instance' },
);
export type Instance = Of<typeof Instance>;

export const listInstances = declareList({
  name: 'instances.list',
  path: '/projects/{id}/environments/{name}/instances',
  tag: 'deployments',
  summary: 'List instances of an environment that run, or that ended by themselves in the last 24 hours',
  scope: 'deployments:read',
  params: environmentParams,
  item: Instance,
  errors: ['project_not_found', 'environment_not_found'],
});
