// sluice catalogue …: builds, checks, serves and ships a catalogue, from its files alone; no service is needed.
import type { Command } from '../frame/command.ts';
import { buildVerb, verifyVerb, withdrawVerb } from './catalogue-build.ts';
import { pushVerb } from './catalogue-push.ts';
import { headersVerb, serveVerb } from './catalogue-serve.ts';
import { explainCatalogue } from './catalogue-site.ts';

export const catalogue: Command = {
  verbs: {
    build: buildVerb,
    verify: verifyVerb,
    withdraw: withdrawVerb,
    serve: serveVerb,
    push: pushVerb,
    headers: headersVerb,
  },
  helpWithoutVerb: true,
  unknownVerb: (word) => `there is no command ${word}`,
  explain: explainCatalogue,
  notes:
    'MANIFEST is catalogue.yaml where none is given; docs/catalogue.md says what is in it. Exit codes:\n0 done, 1 refused or faults found, 2 wrong use, 130 interrupted.',
  examples: [
    'sluice catalogue build --dir site',
    'sluice catalogue verify --dir site --decode',
    'sluice catalogue withdraw harbour --purge',
    'sluice catalogue serve site --port 9000',
    'sluice catalogue push s3://bucket/prefix --prune',
    'sluice catalogue headers nginx --dir /srv/films',
  ],
};
