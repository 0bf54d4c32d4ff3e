// The receivers of webhooks. They remember every request, and are sometimes away, slow or wrong.
import type { Sender, Sent } from '../src/webhooks/send-delivery.ts';
import type { Faults } from './faults.ts';
import type { Outside } from './outside.ts';
import type { Machine, World } from './world.ts';

export interface Arrival {
  at: number;
  url: string;
  delivery: string;
  event: string;
  body: string;
  status: number;
}

const answerMs = [2, 400] as const;
const timeoutMs = 3000;

export class Receivers {
  readonly arrivals: Arrival[] = [];
  /** By delivery. */
  readonly byDelivery = new Map<string, Arrival[]>();
  /** The paths of all that were ever called. */
  readonly known = new Set<string>();
  /** Those that answer 503 at the moment. */
  readonly down = new Set<string>();
  onArrival: (arrival: Arrival) => void = () => {};
  readonly #world: World;
  readonly #outside: Outside;
  readonly #faults: Faults;

  constructor(world: World, outside: Outside, faults: Faults) {
    this.#world = world;
    this.#outside = outside;
    this.#faults = faults;
  }

  /** Sends requests of this process. */
  senderOf(machine: Machine): Sender {
    return {
      send: (url, headers, body) =>
        this.#outside
          .call<Sent>(machine, {
            kind: 'send',
            label: `send ${headers['X-Service-Delivery']} to ${url.pathname}`,
            effect: () => this.#receive(url, headers, body),
            takesMs: answerMs,
            lost: () => new Error('socket hang up'),
            givesUpAfterMs: timeoutMs,
          })
          .catch((error: Error) => ({ status: null, error: error.message, answer: null, retryAfter: undefined })),
      close: async () => {},
    };
  }

  #receive(url: URL, headers: Record<string, string>, body: string): Sent {
    const fails = this.down.has(url.pathname) || (this.#faults.isOn && this.#world.random.chance(0.03));
    this.known.add(url.pathname);
    const delivery = headers['X-Service-Delivery']!;
    const arrival: Arrival = {
      at: this.#world.now,
      url: url.href,
      delivery,
      event: headers['webhook-id']!,
      body,
      status: fails ? 503 : 200,
    };
    this.arrivals.push(arrival);
    const known = this.byDelivery.get(delivery);
    if (known) known.push(arrival);
    else this.byDelivery.set(delivery, [arrival]);
    this.onArrival(arrival);
    return { status: arrival.status, error: null, answer: null, retryAfter: undefined };
  }
}
