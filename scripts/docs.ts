// npm run docs: writes the pages of docs/ that are lists of what the code declares. A test fails while they differ.
import { writeFileSync } from 'node:fs';
import { routes } from '../src/contract/api.ts';
import { errorCatalogue } from '../src/contract/errors.ts';
import { type EventKind, eventCatalogue, eventSchemas } from '../src/contract/events.ts';
import { scopeCatalogue } from '../src/contract/scopes.ts';
import { settings } from '../src/settings.ts';

const cell = (text: string) => text.replaceAll('|', '\\|');
const table = (head: string[], rows: string[][]) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');

const page = (title: string, about: string, body: string) =>
  `# ${title}\n\n${about}\n\n${body}\n\n_Written by \`npm run docs\` from the declarations in \`src/\`; do not edit._\n`;

export function generatedDocs(): Record<string, string> {
  return {
    'docs/errors.md': page(
      'Errors',
      'Every code the API answers with. The running service shows the same list at `/docs/errors`.',
      table(
        ['code', 'status', 'means', 'what to do'],
        Object.entries(errorCatalogue).map(([code, e]) => [`\`${code}\``, String(e.status), e.means, e.remedy]),
      ),
    ),
    'docs/events.md': page(
      'Events',
      'Every event that the service publishes: to webhooks (see [webhooks.md](webhooks.md)), at `GET /v1/events` and on its ' +
        'stream. `data` is the record as the API shows it; its schema is in the `webhooks` section of `/v1/openapi.json`.',
      table(
        ['kind', 'when', '`data`'],
        Object.entries(eventCatalogue).map(([kind, when]) => [
          `\`${kind}\``,
          when,
          `\`${(eventSchemas[kind as EventKind].properties.data as { $id?: string }).$id}\``,
        ]),
      ),
    ),
    'docs/settings.md': page(
      'Settings',
      'Read from the environment at start. A mistake stops the start with one line each and exit code 78.',
      table(
        ['setting', 'default', 'what it does'],
        Object.entries(settings).map(([name, s]) => [`\`${name}\``, s.default ? `\`${s.default}\`` : '', s.about]),
      ),
    ),
    'docs/scopes.md': page(
      'Scopes',
      'What a token may do.',
      table(
        ['scope', 'allows'],
        Object.entries(scopeCatalogue).map(([scope, about]) => [`\`${scope}\``, about]),
      ),
    ),
    'docs/routes.md': page(
      'Routes',
      'Every route of the API. Bodies, parameters and answers: `/docs` and `/v1/openapi.json` of the running service.',
      table(
        ['route', 'scope', 'what it does'],
        routes.map((r) => [
          `\`${r.method} /v1${r.path}\``,
          r.scope === 'public' ? 'none' : r.scope === null ? 'any token' : `\`${r.scope}\``,
          r.summary,
        ]),
      ),
    ),
  };
}

if (import.meta.main) for (const [path, content] of Object.entries(generatedDocs())) writeFileSync(path, content);
