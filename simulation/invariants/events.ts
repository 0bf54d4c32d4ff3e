import { type CommitInvariant, firstOf } from './commit.ts';

export const sequencesWithoutGaps: CommitInvariant = {
  name: 'sequences without gaps',
  tables: ['event', 'project'],
  check({ after }) {
    const last = new Map<string, number>();
    const gap = firstOf(after.event, ({ id, project_id, sequence }) => {
      const expected = (last.get(project_id) ?? 0) + 1;
      last.set(project_id, sequence);
      return sequence === expected ? null : `${id} has the number ${sequence} in ${project_id}, not ${expected}`;
    });
    if (gap !== null) return gap;
    return firstOf(after.project, ({ id, next_sequence }) =>
      next_sequence === (last.get(id) ?? 0) + 1 ? null : `${id} goes on with ${next_sequence} after ${last.get(id)}`,
    );
  },
};

export const strictPositionsWithoutGaps: CommitInvariant = {
  name: 'no two deliveries of a strict webhook share a position',
  tables: ['delivery'],
  check({ after }) {
    const taken = new Set<string>();
    return firstOf(after.delivery, ({ id, webhook_id, position }) => {
      if (position === 0) return null;
      const place = `${webhook_id} ${position}`;
      if (taken.has(place)) return `${id} has the position ${position}, as another delivery of ${webhook_id}`;
      taken.add(place);
      return null;
    });
  },
};
