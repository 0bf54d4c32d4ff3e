// Listing, creating and reading deployments.
import * as contract from '../../contract/deployments.ts';
import { ApiError } from '../../contract/errors.ts';
import { parseImage } from '../../contract/image-reference.ts';
import { keyOf } from '../../environments/key.ts';
import { findEnvironment } from '../../environments/queries.ts';
import { environmentUnknown } from '../../environments/unknown.ts';
import { type ServedRoute, serve } from '../../http/api/served-route.ts';
import { requireProject } from '../../projects/queries.ts';
import { publish } from '../../signals/signals.ts';
import { listDeployments } from '../queries.ts';
import { type CreateParts, createDeployment, rolloutChoicesOf } from './create.ts';
import { loadDeployments } from './load.ts';
import { requireDeployment } from './require.ts';

export function deploymentRecordRoutes(parts: CreateParts): ServedRoute[] {
  return [
    serve(contract.listDeployments, async (call, db) => {
      const project = await requireProject(db, call.caller, call.params.id);
      const rows = await listDeployments(db, project.id, call.query, call.page);
      const shown = new Map((await loadDeployments(db, rows)).map((body) => [body.id, body]));
      return {
        body: call.paginate(
          rows,
          (row) => row.id,
          (row) => shown.get(row.id)!,
        ),
      };
    }),

    serve(contract.createDeployment, async (call, tx) => {
      const project = await requireProject(tx, call.caller, call.params.id);
      const { image, ...choices } = call.body;
      refuseBadImage(image);
      const rollout = rolloutChoicesOf(choices);
      const environment = await findEnvironment(tx, project.id, call.body.environment);
      if (!environment) throw environmentUnknown(call.body.environment);
      const { row, body } = await createDeployment(tx, parts, call.caller, environment, {
        kind: 'deploy',
        image,
        digest: null,
        ...rollout,
        settings: environment,
        restoredFrom: null,
      });
      publish(tx, 'environments', keyOf(row));
      return { body, version: row.version, location: `/projects/${project.id}/deployments/${row.id}` };
    }),

    serve(contract.getDeployment, async (call, db) => {
      const row = await requireDeployment(db, call.caller, call.params);
      return { body: (await loadDeployments(db, [row]))[0]!, version: row.version };
    }),
  ];
}

function refuseBadImage(image: string): void {
  if (parseImage(image)) return;
  throw new ApiError('invalid_request', 'The image is not a reference such as registry.example/name:tag.', {
    details: [{ path: 'body.image', message: 'must be registry/name:tag or name@sha256:…' }],
  });
}
