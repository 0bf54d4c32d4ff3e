import { useState } from 'react';
import type { Environment } from '../../../../src/client/index.ts';
import type { Strategy } from '../../../../src/contract/deployments.ts';
import { usualPull } from '../../../../src/contract/references.ts';
import { secondsText } from '../../format.ts';
import { navigate } from '../../router.ts';
import { useSignedIn } from '../../session.ts';
import { stepsOf } from '../display/canary-progress.tsx';
import { notify } from '../layout/notices.tsx';
import { Form, Input, numberField, Select, textField } from './form.tsx';

const strategyChoices = [
  ['rolling', 'Rolling'],
  ['canary', 'Canary'],
  ['blue_green', 'Blue-green'],
] as const satisfies [Strategy, string][];

const strategyHints: Record<Strategy, string> = {
  canary: 'Starts with a share of the traffic and continues while its metrics are good.',
  rolling: 'Replaces one instance after another.',
  blue_green: 'Starts all new instances, then switches traffic at once.',
};

const usualShare = 10;

interface DeployFormProps {
  project: string;
  environments: Environment[];
  /** What to start with: the same image again, say. */
  image?: string;
}

export function DeployForm({ project, environments, image }: DeployFormProps) {
  const { client } = useSignedIn();
  const [strategy, setStrategy] = useState<Strategy>('rolling');
  const [share, setShare] = useState(usualShare);
  const [name, setName] = useState(environments[0]!.name);
  const environment = environments.find((each) => each.name === name)!;
  // The first revision has nothing to share requests with.
  const isFirst = environment.active_revision === null;
  const submit = async (data: FormData) => {
    const reference = textField(data, 'image') ?? '';
    const pull = usualPull(reference);
    const note = textField(data, 'note');
    const deployment = await client.deployments.create(project, {
      environment: name,
      image: reference,
      ...(pull && { pull }),
      ...(!isFirst && { strategy }),
      ...(!isFirst && strategy === 'canary' && { canary_percent: numberField(data, 'canary_percent') ?? usualShare }),
      ...(note && { note }),
    });
    notify(`Deploying ${deployment.revision} to ${deployment.environment}.`);
    navigate(`/projects/${project}/deployments/${deployment.id}`);
  };
  return (
    <Form label="Deploy" verb="Deploy" submit={submit} keep>
      <div className="fields">
        <Input
          name="image"
          label="Image"
          isWide
          placeholder="registry.example/shop:1.4"
          hint="Without a registry, as in shop:2, it is the one that the Docker of the service has."
          required
          defaultValue={image}
          pattern="[!-~]+"
          title="must be an image, as in registry.example/shop:1.4"
        />
        {environments.length > 1 && (
          <Select
            name="environment"
            label="Environment"
            options={environments.map((each) => [each.name, each.name] as const)}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
        )}
        {!isFirst && (
          <Select
            name="strategy"
            label="Strategy"
            hint={strategyHints[strategy]}
            options={strategyChoices}
            value={strategy}
            onChange={(event) => setStrategy(event.currentTarget.value as Strategy)}
          />
        )}
        {!isFirst && strategy === 'canary' && (
          <Input
            name="canary_percent"
            label="Initial traffic"
            unit="%"
            type="number"
            required
            min={1}
            max={99}
            defaultValue={usualShare}
            onInput={(event) => setShare(event.currentTarget.valueAsNumber)}
            hint={planOf(share, environment.canary)}
          />
        )}
        <Input name="note" label="Note" hint="Shown with the deployment." maxLength={500} />
      </div>
    </Form>
  );
}

/** What lies ahead: `10 % for 2 min, 50 % for 2 min, then all requests.` */
function planOf(share: number, policy: Environment['canary']): string {
  const steps = stepsOf(share, policy).filter(({ seconds }) => seconds !== null);
  const shares = steps.map(
    ({ percent, seconds }) =>
      `${percent} % ${policy.advance === 'manual' ? 'until you promote it' : `for ${secondsText(seconds!)}`}`,
  );
  return Number.isNaN(share) ? '' : `${shares.join(', ')}, then all requests.`;
}
