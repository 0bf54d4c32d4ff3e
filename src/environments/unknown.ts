import { ApiError } from '../contract/errors.ts';

/** `path`: where the request names the environment. */
export const environmentUnknown = (name: string, path = 'body.environment') =>
  new ApiError('environment_unknown', `The project has no environment ${name}.`, {
    details: [{ path, message: name }],
  });
