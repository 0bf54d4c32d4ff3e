import { useState } from 'react';
import type { Environment } from '../../../../src/client/index.ts';
import type { Strategy } from '../../../../src/contract/deployments.ts';
import { navigate } from '../../router.ts';
import { useSignedIn } from '../../session.ts';
import { Form, Input, numberField, Select, textField } from './form.tsx';

const strategyChoices = [
  ['canary', 'Canary'],
  ['rolling', 'Rolling'],
  ['blue_green', 'Blue-green'],
] as const satisfies [Strategy, string][];

const strategyHints: Record<Strategy, string> = {
  canary: 'A share of requests first, and the rest when its figures are good.',
  rolling: 'Instance by instance.',
  blue_green: 'All new instances up, then one switch.',
};

export function DeployForm({ project, environments }: { project: string; environments: Environment[] }) {
  const { client } = useSignedIn();
  const [strategy, setStrategy] = useState<string>('canary');
  const submit = async (data: FormData) => {
    const deployment = await client.deployments.create(project, {
      environment: textField(data, 'environment') ?? '',
      image: textField(data, 'image') ?? '',
      strategy: strategy as Strategy,
      ...(strategy === 'canary' && { canary_percent: numberField(data, 'canary_percent') ?? 10 }),
      ...(textField(data, 'note') && { note: textField(data, 'note')! }),
    });
    navigate(`/projects/${project}/deployments/${deployment.id}`);
  };
  return (
    <Form label="Deploy" verb="Deploy" submit={submit} keep>
      <div className="fields">
        <Input
          name="image"
          label="Image"
          placeholder="registry.example/shop:1.4"
          hint="registry/name:tag; a digest is allowed."
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
            label="First share, percent"
            type="number"
            min={1}
            max={99}
            defaultValue={10}
            hint="Where nothing is live yet, the first deployment gets all traffic."
          />
        )}
        <Input name="note" label="Note" hint="For people; shown with the deployment." />
      </div>
    </Form>
  );
}
