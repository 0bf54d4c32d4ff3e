// The operations on events have a file of their own, because the type of an event is built from the records that the
// other operations return.

import type { QueryOf } from '../contract/declare/route.ts';
import type * as events from '../contract/events.ts';
import type { ChangeNotice, SluiceEvent } from './events.ts';
import { get, list } from './method.ts';
import { operation } from './operation.ts';
import type { StreamOptions } from './request.ts';

type Followed<Q> = Q extends { changes: 'true' } ? SluiceEvent | ChangeNotice : SluiceEvent;
type Follow<Query> = <const Q extends Query | undefined = undefined>(
  query?: Q,
  options?: StreamOptions,
) => AsyncIterable<Followed<Q>>;

export const eventOperations = {
  events: {
    list: list<typeof events.listEvents, SluiceEvent>('/events'),
    get: get<typeof events.getEvent, SluiceEvent>('/events/{evt}'),
    stream: operation<Follow<QueryOf<typeof events.streamEvents>>>('stream', '/events/stream'),
  },
};
