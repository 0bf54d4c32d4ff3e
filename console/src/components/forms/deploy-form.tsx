import { useState } from 'react';
import type { Environment } from '../../../../src/client/index.ts';
import type { Strategy } from '../../../../src/contract/deployments.ts';
import { navigate } from '../../router.ts';
import { useSignedIn } from '../../session.ts';
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

interface DeployFormProps {
  project: string;
  environments: Environment[];
  /** What to start with: the same image again, say. */
  image?: string;
}

export function DeployForm({ project, environments, image }: DeployFormProps) {
  const { client } = useSignedIn();
  const [strategy, setStrategy] = useState<string>('rolling');
  const submit = async (data: FormData) => {
    const deployment = await client.deployments.create(project, {
      environment: textField(data, 'environment') ?? '',
      image: textField(data, 'image') ?? '',
      strategy: strategy as Strategy,
      ...(strategy === 'canary' && { canary_percent: numberField(data, 'canary_percent') ?? 10 }),
      ...(textField(data, 'note') && { note: textField(data, 'note')! }),
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
          placeholder="registry.example/shop:1.4"
          hint="registry/name:tag, or with a digest."
          required
          defaultValue={image}
          pattern="[!-~]+"
          title="must be an image, as in registry.example/shop:1.4"
        />
        {environments.length === 1 ? (
          <input type="hidden" name="environment" value={environments[0]!.name} />
        ) : (
          <Select
            name="environment"
            label="Environment"
            options={environments.map(({ name }) => [name, name] as const)}
          />
        )}
        <Select
          name="strategy"
          label="Strategy"
          hint={strategyHints[strategy as Strategy]}
          options={strategyChoices}
          value={strategy}
          onChange={(event) => setStrategy(event.currentTarget.value)}
        />
        {strategy === 'canary' && (
          <Input
            name="canary_percent"
            label="Initial traffic (%)"
            type="number"
            required
            min={1}
            max={99}
            defaultValue={10}
            hint="The first deployment to an environment gets all traffic."
          />
        )}
        <Input name="note" label="Note" hint="Shown with the deployment." maxLength={500} />
      </div>
    </Form>
  );
}
