// sluice domains …: hostnames of a project and their certificates.
import type { Domain } from '../../contract/domains.ts';
import { chooseEnvironment, chooseProject, type ProjectTarget, take } from '../choose-target.ts';
import { type Command, type CommandContext, inEnvironment, inProject, verb } from '../frame/command.ts';
import { didYouMean } from '../frame/suggest.ts';
import { CliError, exit } from '../io.ts';
import { colourOf } from '../terminal/output.ts';
import { clean } from '../terminal/table.ts';

/** By id or by hostname. */
async function chooseDomain(context: CommandContext<'project'>): Promise<ProjectTarget & { domain: Domain }> {
  const here = await chooseProject(context);
  const named = context.args[0]!;
  const domains = await take(here.sluice.domains.list(here.project.id), 10_000);
  const domain = domains.find(({ id, hostname }) => id === named || hostname === named.toLowerCase());
  if (domain) return { ...here, domain };
  const hint = didYouMean(
    named,
    domains.map(({ hostname }) => hostname),
  );
  throw new CliError(exit.notFound, `${here.project.slug} has no domain ${named}.${hint}`, 'See: sluice domains');
}

function showDomain({ out }: CommandContext, domain: Domain): number {
  const { hostname, environment, state, certificate, last_error: wrong, txt_record: record } = domain;
  out.result(domain, () => {
    const until = certificate ? `, certificate valid until ${out.time(certificate.not_after)}` : '';
    out.line(`${hostname}  ${out.paint(colourOf(state), state)}, leads to ${environment}${until}`);
    if (wrong) out.line(`  ${clean(wrong)}`);
    if (domain.proof === null) {
      out.note(
        `Not routed yet: prove it by a certificate or by the TXT record ${record.name} with the value ${record.value}`,
      );
      if (record.found?.length) out.note(`Found instead: ${record.found.map(clean).join(', ')}`);
    }
  });
  return exit.done;
}

const act = (step: 'verify' | 'renew', about: string) =>
  verb({
    about,
    args: 'HOSTNAME',
    options: inProject,
    async run(context) {
      const { sluice, project, domain } = await chooseDomain(context);
      return showDomain(context, await sluice.domains[step](project.id, domain.id));
    },
  });

export const domains: Command = {
  verbs: {
    list: verb({
      about: 'list domains of a project',
      options: inProject,
      async run(context) {
        const { sluice, project } = await chooseProject(context);
        context.out.list(
          await take(sluice.domains.list(project.id), 10_000),
          [
            { title: 'HOSTNAME', of: ({ hostname }) => hostname, whole: true },
            { title: 'STATE', of: ({ state }) => state, colour: ({ state }) => colourOf(state) },
            { title: 'ENV', of: ({ environment }) => environment },
            {
              title: 'VALID UNTIL',
              of: (domain) => context.out.time(domain.certificate?.not_after ?? null),
              optional: 1,
            },
            { title: 'PROBLEM', of: (domain) => domain.last_error },
          ],
          `${project.slug} has no domain. Add one: sluice domains add shop.example`,
        );
        return exit.done;
      },
    }),
    add: verb({
      about: 'add a domain and request its certificate',
      args: 'HOSTNAME',
      options: inEnvironment,
      async run(context) {
        const { sluice, project, environment } = await chooseEnvironment(context);
        return showDomain(
          context,
          await sluice.domains.create(project.id, { hostname: context.args[0]!, environment }),
        );
      },
    }),
    show: verb({
      about: 'show a domain',
      args: 'HOSTNAME',
      options: inProject,
      run: async (context) => showDomain(context, (await chooseDomain(context)).domain),
    }),
    verify: act('verify', 'check the TXT record and DNS, and request the certificate'),
    renew: act('renew', 'renew the certificate now; the old one stays in use until then'),
    remove: verb({
      about: 'remove a domain and its certificate',
      args: 'HOSTNAME',
      options: inProject,
      async run(context) {
        const { sluice, project, domain } = await chooseDomain(context);
        await sluice.domains.delete(project.id, domain.id);
        context.out.result({ id: domain.id, deleted: true }, () => context.out.line(`${domain.hostname} is removed`));
        return exit.done;
      },
    }),
  },
  fallback: 'list',
  examples: [
    'sluice domains add shop.example',
    'sluice domains verify shop.example',
    'sluice domains renew shop.example',
  ],
};
