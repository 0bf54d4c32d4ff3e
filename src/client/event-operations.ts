// Apart from the other operations, because the type of an event is made of their records.
import type * as events from '../contract/events.ts';
import type { SluiceEvent } from './events.ts';
import { get, list, stream } from './method.ts';

export const eventOperations = {
  events: {
    list: list<typeof events.listEvents, SluiceEvent>('/events'),
    get: get<typeof events.getEvent, SluiceEvent>('/events/{evt}'),
    stream: stream<typeof events.streamEvents>('/events/stream'),
  },
};
