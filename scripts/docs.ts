// npm run docs [-- --examples]: writes the pages of docs/ that are lists of what the code declares. A test fails while they differ.
import { writeFileSync } from 'node:fs';
import { routes } from '../src/contract/api.ts';
import { errorCatalogue } from '../src/contract/errors.ts';
import { type EventKind, eventCatalogue, eventSchemas } from '../src/contract/events.ts';
import { scopeCatalogue } from '../src/contract/scopes.ts';
import { settings } from '../src/settings.ts';
import { cliPage } from './cli-docs.ts';

type SettingName = keyof typeof settings;

const cell = (text: string) => text.replaceAll('|', '\\|');
const table = (head: string[], rows: string[][]) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');

const page = (title: string, about: string, body: string) =>
  `# ${title}\n\n${about}\n\n${body}\n\n_Written by \`npm run docs\` from the declarations in \`src/\`; do not edit._\n`;

/** docs/settings.md: the settings that most installations need first, then all others by what they are about. */
const neededSettings: SettingName[] = [
  'SLUICE_HOST',
  'SLUICE_PORT',
  'SLUICE_API_URL',
  'SLUICE_ROUTER_PORT',
  'SLUICE_ROUTER_TLS_PORT',
  'SLUICE_ROUTER_DOMAIN',
  'SLUICE_REGIONS',
  'SLUICE_DATA_DIR',
  'SLUICE_DATABASE_URL',
  'SLUICE_ACME_DIRECTORY',
];

/** A name ending in `*` stands for all that begin with it and are in no group before. */
const settingGroups: { title: string; names: string[]; about?: string }[] = [
  {
    title: 'Access and secrets',
    names: [
      'SLUICE_ADMIN_TOKEN',
      'SLUICE_SECRET_KEY',
      'SLUICE_METRICS_TOKEN',
      'SLUICE_METRICS_OPEN',
      'SLUICE_TRUSTED_PROXIES',
    ],
    about: 'Processes that share a database need the same `SLUICE_SECRET_KEY` and `SLUICE_ADMIN_TOKEN`.',
  },
  {
    title: 'Processes',
    names: [
      'SLUICE_ROLES',
      'SLUICE_ROUTER_WORKERS',
      'SLUICE_DRAIN_S',
      'SLUICE_WATCHDOG_S',
      'SLUICE_DATABASE_DIRECT_URL',
    ],
    about: 'See [operating.md](operating.md) for several processes, upgrades and PgBouncer.',
  },
  {
    title: 'Router',
    names: ['SLUICE_DATA_PLANE', 'SLUICE_HTTPS_REDIRECT', 'SLUICE_ROUTER_*'],
    about:
      'A start-up line says which data plane was chosen and why. Set `SLUICE_HTTPS_REDIRECT` to a port if visitors reach HTTPS at ' +
      'another port than `SLUICE_ROUTER_TLS_PORT`. See [traffic.md](traffic.md).',
  },
  {
    title: 'Certificates',
    names: ['SLUICE_ACME_*', 'SLUICE_LOCAL_DOMAINS'],
    about:
      'The local CA also issues certificates for names below `localhost`, `test`, `example` and `internal`, without proof. See ' +
      '[domains.md](domains.md).',
  },
  {
    title: 'Images and registries',
    names: ['SLUICE_PULL_TIMEOUT_S', 'SLUICE_REGISTRY_*'],
    about:
      'Sluice reads the files of `SLUICE_REGISTRY_CONFIG` again for every pull. Tenants add logins of their own with ' +
      '`sluice registries add`.',
  },
  {
    title: 'Docker',
    names: ['SLUICE_INSTANCE_PORTS', 'SLUICE_DOCKER_*', 'SLUICE_IMAGES_KEPT_HOURS'],
    about:
      '`SLUICE_REGIONS` takes `docker:` (the local socket), `docker:/path/of.sock` or `docker:tcp://host:2376?certs=/folder`, and ' +
      'several hosts joined by `+`. `auto` chooses Docker if its socket answers at the first start, otherwise the stand-in; later ' +
      'starts keep that engine. See [engines.md](engines.md).',
  },
  {
    title: 'Kubernetes',
    names: ['SLUICE_KUBECONFIG', 'SLUICE_KUBERNETES_*'],
    about:
      '`SLUICE_REGIONS` takes `kubernetes:`, `kubernetes:context` or `kubernetes:in-cluster`. If `SLUICE_KUBERNETES_ROUTERS` is ' +
      "empty, `kubernetes:in-cluster` admits the pods of Sluice's own namespace, and any other region has no NetworkPolicy. See " +
      '[kubernetes.md](kubernetes.md).',
  },
  {
    title: 'Logs of instances',
    names: ['SLUICE_LOGS_*'],
    about:
      'Credentials for the bucket come from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION` and ' +
      '`AWS_ENDPOINT_URL`. See [logs.md](logs.md).',
  },
  { title: 'Logs of Sluice itself', names: ['SLUICE_LOG_LEVEL', 'SLUICE_LOG_FORMAT'] },
  {
    title: 'How long things are kept',
    names: [
      'SLUICE_EVENT_RETENTION_DAYS',
      'SLUICE_DEPLOYMENT_RETENTION_DAYS',
      'SLUICE_DEPLOYMENT_RETENTION_COUNT',
      'SLUICE_AUDIT_RETENTION_DAYS',
      'SLUICE_HOST_KEPT_DAYS',
    ],
    about: 'Logs and images have settings of their own. See [operating.md](operating.md#how-long-things-are-kept).',
  },
  {
    title: 'Webhooks',
    names: ['SLUICE_WEBHOOK_ALLOW_CIDRS', 'SLUICE_SIGNATURE_HEADER'],
    about: 'See [webhooks.md](webhooks.md).',
  },
  {
    title: 'Catalogue',
    names: ['SLUICE_BASE_URL', 'SLUICE_CATALOGUE_DIR', 'SLUICE_SAMPLE'],
    about: 'See [catalogue.md](catalogue.md).',
  },
  {
    title: 'Limits',
    names: [
      'SLUICE_CONNECTIONS',
      'SLUICE_CONNECTIONS_PER_ADDRESS',
      'SLUICE_STALL_TIMEOUT_S',
      'SLUICE_PROJECTS_PER_ACCOUNT',
      'SLUICE_QUOTAS',
    ],
    about: 'What happens beyond a limit: [operating.md](operating.md#limits-for-one-client-or-account).',
  },
];

function settingsPage(): string {
  const left = new Set(Object.keys(settings) as SettingName[]);
  const take = (name: string): SettingName[] => {
    const found = [...left].filter((one) => (name.endsWith('*') ? one.startsWith(name.slice(0, -1)) : one === name));
    if (found.length === 0) throw new Error(`no setting, or one that is in two groups: ${name}`);
    for (const one of found) left.delete(one);
    return found;
  };
  const rows = (names: SettingName[]) =>
    table(
      ['setting', 'default', 'what it does'],
      names.map((name) => [
        `\`${name}\``,
        settings[name].default && `\`${settings[name].default}\``,
        settings[name].about,
      ]),
    );
  const needed = rows(neededSettings.flatMap(take));
  const groups = settingGroups.map(({ title, names, about }) =>
    [`## ${title}`, rows(names.flatMap(take)), ...(about ? [about] : [])].join('\n\n'),
  );
  if (left.size > 0) throw new Error(`in no group of docs/settings.md: ${[...left].join(', ')}`);
  return page(
    'Settings',
    'Sluice reads its settings from the environment when it starts:\n\n' +
      '```sh\nSLUICE_HOST=0.0.0.0 SLUICE_ROUTER_DOMAIN=apps.example.com npm start\n```\n\n' +
      'An invalid value stops the start with exit code 78 and one line per mistake. Most installations need only these:',
    [needed, ...groups].join('\n\n'),
  );
}

export function generatedDocs(): Record<string, string> {
  return {
    'docs/errors.md': page(
      'Errors',
      'Every error code of the API. A running service shows the same list at `/docs/errors`.',
      table(
        ['code', 'status', 'means', 'what to do'],
        Object.entries(errorCatalogue).map(([code, e]) => [`\`${code}\``, String(e.status), e.means, e.remedy]),
      ),
    ),
    'docs/events.md': page(
      'Events',
      'Sluice sends these events to [webhooks](webhooks.md), lists them at `GET /v1/events` and streams them live. `data` is the ' +
        'resource as the API returns it; its schema is in the `webhooks` section of `/v1/openapi.json`.',
      table(
        ['kind', 'when', '`data`'],
        Object.entries(eventCatalogue).map(([kind, when]) => [
          `\`${kind}\``,
          when,
          `\`${(eventSchemas[kind as EventKind].properties.data as { $id?: string }).$id}\``,
        ]),
      ),
    ),
    'docs/settings.md': settingsPage(),
    'docs/scopes.md': page(
      'Scopes',
      'A token has one or more scopes. Each allows a set of requests:',
      table(
        ['scope', 'allows'],
        Object.entries(scopeCatalogue).map(([scope, about]) => [`\`${scope}\``, about]),
      ),
    ),
    'docs/routes.md': page(
      'Routes',
      'Every route of the API. A running service documents parameters, bodies and responses at `/docs` and `/v1/openapi.json`.',
      table(
        ['route', 'scope', 'what it does'],
        routes.map((r) => [
          `\`${r.method} /v1${r.path}\``,
          r.scope === 'public' ? 'none' : r.scope === null ? 'any token' : `\`${r.scope}\``,
          r.summary,
        ]),
      ) +
        '\n\nChanges to `port`, `variables`, `health_check` and `resources` of an environment apply with the next deployment; see ' +
        '[deployments.md](deployments.md#when-a-setting-takes-effect).',
    ),
  };
}

if (import.meta.main) {
  for (const [path, content] of Object.entries(generatedDocs())) writeFileSync(path, content);
  writeFileSync('docs/cli.md', await cliPage());
  if (process.argv.includes('--examples')) await (await import('./record-examples.ts')).recordExamples();
}
