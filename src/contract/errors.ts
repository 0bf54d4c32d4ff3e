// Every error of the API: its status, what it means, and what the caller can do about it. docs/errors.md and the page
// behind `error.docs` are generated from this list.

interface ErrorEntry {
  status: number;
  means: string;
  remedy: string;
}

const missing = (resource: string): ErrorEntry => ({
  status: 404,
  means: `There is no such ${resource}, or this token has no access to it.`,
  remedy: 'Check the id and that the token belongs to the right account and may see the project.',
});

export const errorCatalogue = {
  invalid_request: {
    status: 400,
    means: 'A parameter, header or field of the body is wrong. `error.details` names each one.',
    remedy: 'Correct the named fields and send the request again.',
  },
  invalid_json: {
    status: 400,
    means: 'The body is not JSON in UTF-8.',
    remedy: 'Send one JSON value, UTF-8 without a byte order mark.',
  },
  invalid_cursor: {
    status: 400,
    means: 'The cursor does not come from this list with these filters.',
    remedy: 'Use `page.next` of the previous page unchanged, with the same filters; or start again without a cursor.',
  },
  token_in_query: {
    status: 400,
    means:
      'The query string holds a credential. Addresses end up in logs and browser histories, so the request is refused.',
    remedy: 'Send `Authorization: Bearer <token>`, and replace the token: a proxy or log may have recorded it.',
  },
  token_missing: {
    status: 401,
    means: 'The request has no `Authorization: Bearer` header.',
    remedy: 'Send the token in that header.',
  },
  token_invalid: {
    status: 401,
    means: 'The service does not know this token.',
    remedy: 'Check for a truncated copy or the token of another installation.',
  },
  token_expired: {
    status: 401,
    means: 'The token was valid until its `expires_at`.',
    remedy: 'Create a new one with `POST /v1/tokens`.',
  },
  token_revoked: {
    status: 401,
    means: 'The token was revoked.',
    remedy: 'Create a new one with `POST /v1/tokens`.',
  },
  insufficient_scope: {
    status: 403,
    means:
      'The token is valid but lacks the scope for this request, or would create or revoke a token with more rights than its own.',
    remedy: 'Use a token with the scope that `error.details` names. `:write` does not include `:read`.',
  },
  route_not_found: {
    status: 404,
    means: 'There is no such path.',
    remedy: 'Compare the path with the reference at `/docs`.',
  },
  project_not_found: missing('project'),
  environment_not_found: missing('environment'),
  deployment_not_found: missing('deployment'),
  revision_not_found: missing('revision'),
  alert_rule_not_found: missing('alert rule'),
  alert_not_found: missing('alert'),
  domain_not_found: missing('domain'),
  webhook_not_found: missing('webhook'),
  delivery_not_found: missing('delivery'),
  event_not_found: missing('event'),
  token_not_found: missing('token'),
  registry_not_found: missing('registry login'),
  session_not_found: missing('session'),
  method_not_allowed: {
    status: 405,
    means: 'The path exists, but not with this method. `Allow` lists the methods it has.',
    remedy: 'Use one of the methods in `Allow`.',
  },
  request_timeout: {
    status: 408,
    means: 'The request did not arrive completely within the time limit.',
    remedy: 'Send it again, without pauses.',
  },
  deployment_in_progress: {
    status: 409,
    means: 'The environment has a deployment that has not ended. `error.details` names it.',
    remedy: 'Wait for it, or abort it.',
  },
  deployment_state_conflict: {
    status: 409,
    means: 'The deployment is in a state that does not allow this. `error.details` names the state.',
    remedy: 'Read the deployment again.',
  },
  slug_taken: {
    status: 409,
    means: 'Another project of this account has that slug.',
    remedy: 'Choose another `slug`.',
  },
  environment_exists: {
    status: 409,
    means: 'The project has an environment of that name.',
    remedy: 'Choose another name, or change the existing one with PATCH.',
  },
  alert_rule_exists: {
    status: 409,
    means: 'The environment has an alert rule of that name.',
    remedy: 'Choose another name, or change the existing one with PATCH.',
  },
  domain_taken: {
    status: 409,
    means: 'The hostname is already in use, in this account or another one.',
    remedy:
      'Remove the domain that has it. If another account claims it without proof, `error.details` names the TXT record that ' +
      'proves that it is yours.',
  },
  idempotency_in_flight: {
    status: 409,
    means: 'A request with this `Idempotency-Key` is still in progress.',
    remedy: 'Wait for its answer, or try again after `Retry-After`.',
  },
  version_conflict: {
    status: 412,
    means: 'The resource has changed since the version in `If-Match`.',
    remedy: 'Read it again and repeat the change with its new `ETag`.',
  },
  body_too_large: {
    status: 413,
    means: 'The body is larger than 1 MiB.',
    remedy: 'Send a smaller body.',
  },
  unsupported_media_type: {
    status: 415,
    means: 'A body needs `Content-Type: application/json`.',
    remedy: 'Send that header.',
  },
  region_unknown: {
    status: 422,
    means: 'The service has no region of that name.',
    remedy: 'See `GET /v1/regions`.',
  },
  environment_unknown: {
    status: 422,
    means: 'The project has no environment of that name to deploy to.',
    remedy: 'Create it with `POST /v1/projects/{id}/environments`, or name another one.',
  },
  environment_locked: {
    status: 422,
    means: 'The environment is locked. `error.details` has the reason.',
    remedy: 'Unlock it with PATCH `{"locked": null}` once the reason no longer applies.',
  },
  revision_not_eligible: {
    status: 422,
    means:
      'The revision is not eligible for a rollback, or there is no live revision to redeploy. `error.details` says why.',
    remedy: 'Choose a revision with `rollback_eligible`. If nothing is live, deploy an image.',
  },
  canary_unhealthy: {
    status: 422,
    means: 'The canary has no healthy instance, so it cannot get more traffic.',
    remedy: 'Wait until it is healthy, or abort.',
  },
  domain_not_pointed: {
    status: 422,
    means:
      'The DNS check failed: the hostname does not resolve to an address, or lacks the TXT record that proves that it is yours.',
    remedy: 'Change its DNS records; `error.details` says what is missing. Then verify again.',
  },
  webhook_url_not_allowed: {
    status: 422,
    means: 'Webhooks may not go to this address: it is private, or resolves to a private address.',
    remedy: 'Use a public address, or have the operator open the range with `SLUICE_WEBHOOK_ALLOW_CIDRS`.',
  },
  webhook_not_enabled: {
    status: 422,
    means: 'The webhook is paused or disabled, so nothing would be sent. `error.details` names the state.',
    remedy: 'Enable it with PATCH `{"state": "enabled"}` first.',
  },
  idempotency_key_reused: {
    status: 422,
    means: 'This `Idempotency-Key` was used with another body.',
    remedy: 'Use a new key for a new request.',
  },
  quota_exceeded: {
    status: 422,
    means: 'The account or project has reached its limit. `error.details` names the limit; `GET /account` shows all.',
    remedy: 'Delete what you no longer need.',
  },
  rate_limited: {
    status: 429,
    means: 'Too many requests with this token, or from this address without a valid one.',
    remedy: 'Wait for the seconds in `Retry-After`.',
  },
  internal_error: {
    status: 500,
    means: 'The service failed. Its log has the cause under the request id.',
    remedy: 'Try again; if it persists, look for the request id in the log.',
  },
  database_unavailable: {
    status: 503,
    means: 'The database does not answer. The service recovers when the database does.',
    remedy: 'Try again after `Retry-After`.',
  },
  region_unavailable: {
    status: 503,
    means: 'The engine of the region does not answer. The request changed nothing.',
    remedy: 'Try again after `Retry-After`; see `GET /v1/regions`.',
  },
  logs_unavailable: {
    status: 503,
    means: 'The bucket with the logs does not answer. New lines are stored once it does.',
    remedy: 'Try again after `Retry-After`; if it persists, the log of the service names the cause.',
  },
  busy: {
    status: 503,
    means:
      'The account has too many log reads in progress, or too much unread response data. The request changed nothing.',
    remedy: 'Finish reading the open responses, then try again after `Retry-After`.',
  },
  shutting_down: {
    status: 503,
    means: 'The service is stopping.',
    remedy: 'Try again after `Retry-After`, or on another process.',
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorCatalogue;

export interface ErrorDetail {
  path: string;
  message: string;
}

/** An error with a message for the caller. Details that only the log may contain go into `cause`. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetail[] | undefined;
  readonly headers: Record<string, string>;

  constructor(
    code: ErrorCode,
    message: string,
    more: { details?: ErrorDetail[]; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, { cause: more.cause });
    this.code = code;
    this.details = more.details;
    this.headers = more.headers ?? {};
  }

  get status(): number {
    return errorCatalogue[this.code].status;
  }
}

/** Path parameters, and the error if there is no such resource. */
const notFoundByParam = {
  id: 'project_not_found',
  name: 'environment_not_found',
  dpl: 'deployment_not_found',
  r: 'revision_not_found',
  rul: 'alert_rule_not_found',
  alr: 'alert_not_found',
  dom: 'domain_not_found',
  whk: 'webhook_not_found',
  dlv: 'delivery_not_found',
  evt: 'event_not_found',
  tok: 'token_not_found',
  reg: 'registry_not_found',
  ses: 'session_not_found',
} as const satisfies Record<string, ErrorCode>;

export type ParamName = keyof typeof notFoundByParam;

export function notFound(param: ParamName, value: string): ApiError {
  const code = notFoundByParam[param];
  const resource = code.slice(0, -'_not_found'.length).replaceAll('_', ' ');
  return new ApiError(code, `There is no ${resource} ${JSON.stringify(value.slice(0, 100).toWellFormed())}.`);
}

/** `sentence` says the whole limit: "A project has at most 50 domains." */
export const quotaExceeded = (sentence: string, path: string, limit: number): ApiError =>
  new ApiError('quota_exceeded', sentence, { details: [{ path, message: `at most ${limit}` }] });
