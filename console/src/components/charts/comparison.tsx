import type { Deployment } from '../../../../src/client/index.ts';
import { milliseconds, percent } from './chart.tsx';

type Canary = NonNullable<Deployment['canary']>;

const tones = { good: 'good', bad: 'bad', inconclusive: 'warn' } as const;

/** The metrics of both revisions since the current canary step began. */
export function StepComparison({ canary, deployment }: { canary: Canary; deployment: Deployment }) {
  const row = (name: string, role: string, side: Canary['stable']) => (
    <tr className={role === 'canary' ? 'fresh' : undefined}>
      <th scope="row">
        {name} <span className="small">{role}</span>
      </th>
      <td data-label="Requests">{side.requests}</td>
      <td data-label="Error rate">{side.error_rate === null ? '–' : percent(side.error_rate)}</td>
      <td data-label="4xx">{side.client_error_rate === null ? '–' : percent(side.client_error_rate)}</td>
      <td data-label="p95">{side.p95_ms === null ? '–' : milliseconds(side.p95_ms)}</td>
    </tr>
  );
  return (
    <section aria-labelledby="comparison">
      <h2 id="comparison">Metrics of this step</h2>
      <table className="table sides">
        <thead>
          <tr>
            <th scope="col">Revision</th>
            <th scope="col">Requests</th>
            <th scope="col">Error rate</th>
            <th scope="col">4xx</th>
            <th scope="col">p95</th>
          </tr>
        </thead>
        <tbody>
          {row(deployment.previous_revision ?? 'previous', 'live', canary.stable)}
          {row(deployment.revision, 'canary', canary.canary)}
        </tbody>
      </table>
      <p>
        <span className={`badge ${tones[canary.analysis.verdict]}`}>{canary.analysis.verdict}</span>{' '}
        {canary.analysis.reason}
      </p>
    </section>
  );
}
