/** Everything the service tells of, and when. */
export const eventCatalogue = {
  'deployment.created': 'A deployment was asked for and accepted.',
  'deployment.succeeded': 'A deployment ended and its revision serves all traffic.',
  'deployment.failed':
    'A deployment ended otherwise: it failed or was canceled. The revision before serves all traffic.',
  'revision.rolled_back': 'A revision that had traffic lost it to an earlier one; `cause` says why.',
  'alert.fired': 'An alert rule’s condition held long enough.',
  'alert.resolved': 'It no longer holds.',
  'domain.certificate_renewed': 'A domain serves a renewed certificate.',
} as const;

export type EventKind = keyof typeof eventCatalogue;
