import type { ErrorDetail } from '../../contract/errors.ts';

const maxFaults = 20;
const maxPath = 200;

/** What is wrong with a value, each fault with its path: as many as a client is told, and no more. */
export class FaultList {
  readonly details: ErrorDetail[] = [];
  readonly #trail: string[];

  constructor(root: string) {
    this.#trail = [root];
  }

  get isFull(): boolean {
    return this.details.length >= maxFaults;
  }

  /** What is added until `leave` belongs to this field or item. */
  enter(name: string | number): void {
    this.#trail.push(String(name));
  }

  leave(): void {
    this.#trail.pop();
  }

  add(message: string, ...below: string[]): void {
    if (!this.isFull) this.details.push({ path: clip([...this.#trail, ...below].join('.')), message });
  }
}

/** Cuts the text without splitting a character. */
const clip = (text: string): string => (text.length > maxPath ? `${text.slice(0, maxPath)}…` : text).toWellFormed();
