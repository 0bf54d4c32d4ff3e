export type { ErrorDetail } from '../contract/errors.ts';
export {
  type Catalogue,
  type CatalogueDocument,
  type CatalogueOptions,
  CatalogueReadError,
  type CatalogueRendition,
  type CatalogueStream,
  catalogue,
} from './catalogue.ts';
export { createClient, type Sluice, type WaitOptions } from './client.ts';
export { SluiceError, type SluiceErrorCode } from './error.ts';
export { Listing, type Page } from './operation.ts';
export type { CallOptions, ClientOptions, StreamOptions } from './request.ts';
export { type VerifyOptions, verifySignature, verifyWebhook, type WebhookHeaders } from './signature.ts';
export type * from './types.ts';
