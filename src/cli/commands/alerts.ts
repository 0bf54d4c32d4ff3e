// sluice alerts …: what fired, and the rules it fires by.
import type { AlertMetric, AlertRule, Comparator, OnCanary, Severity } from '../../contract/alert-rules.ts';
import type { AlertState } from '../../contract/alerts.ts';
import { chooseEnvironment, chooseProject, type ProjectTarget, take, takePaged } from '../choose-target.ts';
import { alertMetrics, alertStates, onCanaryChoices, severities } from '../frame/choices.ts';
import { type Command, type CommandContext, inEnvironment, inProject, paged, verb } from '../frame/command.ts';
import { didYouMean } from '../frame/suggest.ts';
import { CliError, exit, UsageError } from '../io.ts';
import { colourOf } from '../terminal/output.ts';

const ruleOptions = {
  above: { type: 'string', value: 'X', about: 'fires above this value' },
  below: { type: 'string', value: 'X', about: 'fires below this value' },
  window: { type: 'string', value: 'S', about: 'seconds of measurements to evaluate' },
  for: { type: 'string', value: 'S', about: 'seconds the condition must hold before it fires' },
  severity: { type: 'string', value: 'S', choices: severities, about: 'severity of its alerts' },
  'on-canary': { type: 'string', value: 'WHAT', choices: onCanaryChoices, about: 'abort: the alert aborts a canary' },
} as const;

type RuleOption = keyof typeof ruleOptions;

function thresholdOf(context: CommandContext<RuleOption>): { comparator?: Comparator; threshold?: number } {
  const [above, below] = [context.text('above'), context.text('below')];
  if (above !== undefined && below !== undefined) throw new UsageError('Either --above or --below.');
  const text = above ?? below;
  if (text === undefined) return {};
  if (!/^\d+(\.\d+)?$/.test(text)) throw new UsageError(`--${above === undefined ? 'below' : 'above'} takes a number.`);
  return { comparator: above === undefined ? 'lt' : 'gt', threshold: Number(text) };
}

function changesOf(context: CommandContext<RuleOption>) {
  const [window, wait] = [context.whole('window', 10, 86_400), context.whole('for', 0, 86_400)];
  const severity = context.text('severity') as Severity | undefined;
  const onCanary = context.text('on-canary') as OnCanary | undefined;
  return {
    ...thresholdOf(context),
    ...(window !== undefined && { window_s: window }),
    ...(wait !== undefined && { for_s: wait }),
    ...(severity && { severity }),
    ...(onCanary && { on_canary: onCanary }),
  };
}

const conditionOf = (rule: AlertRule): string =>
  rule.metric === 'external'
    ? 'reported by another system'
    : `${rule.metric} ${rule.comparator === 'gt' ? '>' : '<'} ${rule.threshold} over ${rule.window_s} s, for ${rule.for_s} s`;

/** By id or name. */
async function chooseRule(context: CommandContext<'project'>): Promise<ProjectTarget & { rule: AlertRule }> {
  const here = await chooseProject(context);
  const named = context.args[0]!;
  const rules = await take(here.sluice.alertRules.list(here.project.id), 10_000);
  const found = rules.filter(({ id, name }) => id === named || name === named);
  if (found.length === 1) return { ...here, rule: found[0]! };
  if (found.length > 1)
    throw new UsageError(`${found.length} rules have that name: ${found.map(({ id }) => id).join(', ')}`);
  const hint = didYouMean(
    named,
    rules.map(({ name }) => name),
  );
  throw new CliError(exit.notFound, `${here.project.slug} has no rule ${named}.${hint}`, 'See: sluice alerts rules');
}

function showRule({ out }: CommandContext, rule: AlertRule): number {
  out.result(rule, () =>
    out.line(`${rule.id}  ${rule.name}: ${conditionOf(rule)}${rule.enabled ? '' : ' (disabled)'}`),
  );
  return exit.done;
}

const turn = (enabled: boolean, about: string) =>
  verb({
    about,
    args: 'RULE',
    options: inProject,
    async run(context) {
      const { sluice, project, rule } = await chooseRule(context);
      return showRule(context, await sluice.alertRules.update(project.id, rule.id, { enabled }));
    },
  });

export const alerts: Command = {
  verbs: {
    list: verb({
      about: 'list alerts',
      options: {
        ...inEnvironment,
        ...paged,
        state: { type: 'string', value: 'S', choices: alertStates, about: 'only in this state' },
      },
      async run(context) {
        const { sluice, project } = await chooseProject(context);
        const [environment, state] = [context.text('env'), context.text('state') as AlertState | undefined];
        const query = { ...(environment && { environment }), ...(state && { state }) };
        context.out.list(
          await takePaged(context, sluice.alerts.list(project.id, query)),
          [
            { title: 'STATE', of: (alert) => alert.state, colour: (alert) => colourOf(alert.state) },
            { title: 'SEVERITY', of: ({ severity }) => severity, optional: 2 },
            { title: 'ENV', of: ({ environment: name }) => name },
            { title: 'NAME', of: ({ name }) => name },
            { title: 'MESSAGE', of: ({ message }) => message },
            { title: 'FIRED', of: ({ fired_at }) => context.out.time(fired_at), optional: 1 },
          ],
          `${project.slug} has no such alert.`,
        );
        return exit.done;
      },
    }),
    rules: verb({
      about: 'list alert rules',
      options: inProject,
      async run(context) {
        const { sluice, project } = await chooseProject(context);
        context.out.list(
          await take(sluice.alertRules.list(project.id), 10_000),
          [
            { title: 'NAME', of: ({ name }) => name },
            { title: 'ENV', of: ({ environment }) => environment },
            { title: 'BAD IF', of: conditionOf },
            { title: 'SEVERITY', of: ({ severity }) => severity, optional: 2 },
            { title: 'CANARY', of: ({ on_canary }) => on_canary, optional: 4 },
            { title: 'ENABLED', of: ({ enabled }) => (enabled ? 'yes' : 'no'), optional: 3 },
            { title: 'ID', of: ({ id }) => id, whole: true },
          ],
          `${project.slug} has no alert rule. Create one: sluice alerts add`,
        );
        return exit.done;
      },
    }),
    add: verb({
      about: `add a rule about ${alertMetrics.join(', ')}`,
      args: 'NAME METRIC',
      options: { ...inEnvironment, ...ruleOptions },
      async run(context) {
        const [name, metric] = context.args as [string, AlertMetric];
        if (!alertMetrics.includes(metric))
          throw new UsageError(`A metric is one of ${alertMetrics.join(', ')}.${didYouMean(metric, alertMetrics)}`);
        const { sluice, project, environment } = await chooseEnvironment(context);
        return showRule(
          context,
          await sluice.alertRules.create(project.id, { environment, name, metric, ...changesOf(context) }),
        );
      },
    }),
    change: verb({
      about: 'change a rule',
      args: 'RULE',
      options: { ...inProject, ...ruleOptions },
      async run(context) {
        const { sluice, project, rule } = await chooseRule(context);
        return showRule(context, await sluice.alertRules.update(project.id, rule.id, changesOf(context)));
      },
    }),
    enable: turn(true, 'enable a rule'),
    disable: turn(false, 'disable a rule'),
    remove: verb({
      about: 'remove a rule and resolve its firing alerts',
      args: 'RULE',
      options: inProject,
      async run(context) {
        const { sluice, project, rule } = await chooseRule(context);
        await sluice.alertRules.delete(project.id, rule.id);
        context.out.result({ id: rule.id, deleted: true }, () => context.out.line(`${rule.name} is removed`));
        return exit.done;
      },
    }),
  },
  fallback: 'list',
  examples: [
    'sluice alerts list --state firing',
    'sluice alerts add slow p95_ms --above 800 --for 60 --on-canary abort',
    'sluice alerts change slow --above 1200',
  ],
};
