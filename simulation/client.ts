// How people and programs use the API: each request goes to a process of its own choice, a write is sent again until an
// answer comes, and the answers are remembered.
import type { ApiRequest, ApiResponse, ControlProcess } from './control-process.ts';
import type { Faults } from './faults.ts';
import type { PromisedVersion, Write } from './ledger.ts';
import type { World } from './world.ts';

/** A write, and where it belongs: what is deleted takes it along. */
export interface MarkedWrite extends Omit<Write, 'mayBeGone'> {
  projectId: string | null;
  environment: string | null;
}

const maxTries = 4;

export class Client {
  requests = 0;
  acknowledged = 0;
  unanswered = 0;
  readonly promised = new Map<string, PromisedVersion>();
  readonly #world: World;
  readonly #faults: Faults;
  /** Those that are up. */
  readonly #processes: () => readonly ControlProcess[];
  readonly #onAnswer: () => void;
  readonly #writes: MarkedWrite[] = [];
  /** Ids of projects and webhooks, and environments, that somebody asked to delete. */
  readonly #deleted = new Set<string>();

  /** `onAnswer` is called when the answer to a write has been noted. */
  constructor(world: World, faults: Faults, processes: () => readonly ControlProcess[], onAnswer: () => void) {
    this.#world = world;
    this.#faults = faults;
    this.#processes = processes;
    this.#onAnswer = onAnswer;
  }

  writes(): Write[] {
    return this.#writes.map((write) => {
      const { id, projectId, environment } = write;
      const names = [id ?? '', projectId ?? '', `${projectId} ${environment}`];
      return { ...write, mayBeGone: names.some((name) => this.#deleted.has(name)) };
    });
  }

  /** A write that is about to be sent, with a mark that no other has. */
  mark(kind: Write['kind'], projectId: string | null = null, environment: string | null = null): MarkedWrite {
    const mark = `${kind}-${this.#writes.length + 1}`;
    const write: MarkedWrite = { kind, mark, answer: 'none', id: null, projectId, environment };
    this.#writes.push(write);
    return write;
  }

  willDelete(id: string): void {
    this.#deleted.add(id);
    this.promised.delete(id);
  }

  /** A change was acknowledged with this version. */
  promise(kind: PromisedVersion['kind'], id: string, version: number | null): void {
    const known = this.promised.get(id)?.version ?? 0;
    // Another one with the same name begins anew.
    if (version !== null && !this.#deleted.has(id))
      this.promised.set(id, { kind, id, version: Math.max(version, known) });
  }

  /** With an idempotency key, so that it can be sent again. `onDone` is called if it is acknowledged. */
  write(write: MarkedWrite, request: ApiRequest, onDone: (response: ApiResponse) => void, tries = 1): void {
    const world = this.#world;
    this.send({ ...request, idempotencyKey: write.mark }, (response) => {
      if (isUnclear(response)) {
        this.unanswered++;
        const again = () => this.write(write, request, onDone, tries + 1);
        if (tries < maxTries) world.after(null, world.random.between(200, 4000), `${write.mark} again`, again);
        return;
      }
      write.answer = response.status < 300 ? 'acknowledged' : 'refused';
      if (write.answer === 'acknowledged') {
        this.acknowledged++;
        write.id = response.body.id;
        onDone(response);
      }
      this.#onAnswer();
    });
  }

  /** `onAnswer` gets null where no answer came. */
  send(request: ApiRequest, onAnswer: (response: ApiResponse | null) => void = () => {}): void {
    const world = this.#world;
    const ready = this.#processes();
    this.requests++;
    if (ready.length === 0) {
      world.after(null, 1, 'no process answers', () => onAnswer(null));
      return;
    }
    const { machine, request: serve } = world.random.pick(ready);
    let isOver = false;
    const answer = (label: string, response: ApiResponse | null) => {
      if (isOver) return;
      isOver = true;
      world.after(null, world.random.between(0.1, 3), `${label} ${request.route}`, () => onAnswer(response));
    };
    machine.onCrash.push(() => answer('connection lost:', null));
    world.after(machine, world.random.between(0.1, 3), request.route, () => {
      void serve(request).then((response) => {
        const isLost = this.#faults.isOn && world.random.chance(0.01);
        answer(isLost ? 'answer lost:' : `${response.status}`, isLost ? null : response);
      });
    });
  }
}

const isUnclear = (response: ApiResponse | null): response is null =>
  response === null || response.status >= 500 || response.body?.error?.code === 'idempotency_in_flight';
