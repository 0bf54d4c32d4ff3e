import { Type } from 'typebox';
import { RevisionId } from './deployments.ts';
import { EnvironmentName } from './projects.ts';
import { Choice, Id, Nullable, type Of, Shape, Time } from './shapes.ts';

export const Alert = Shape(
  {
    id: Id('alr', 'The alert.'),
    rule_id: Id('rul', 'The rule whose condition held.'),
    environment: EnvironmentName,
    revision: Nullable(RevisionId),
    state: Choice(['firing', 'resolved'], 'Whether it still holds.'),
    value: Type.Number({ minimum: 0, maximum: 1e12, format: 'double', description: 'What was measured.' }),
    fired_at: Time('When it began.'),
    resolved_at: Nullable(Time('When it ended.')),
  },
  { $id: 'Alert' },
);
export type Alert = Of<typeof Alert>;
