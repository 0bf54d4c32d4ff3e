// Parses server-sent events as the HTML standard defines them, from text that arrives in pieces.
import { SluiceError } from './error.ts';

export interface Message {
  /** The name of the event; `message` if it has none. */
  event: string;
  data: string;
}

const maxCharacters = 16 * 1024 * 1024;

export class MessageParser {
  /** The id of the last complete message; a stream resumes after it. */
  lastEventId: string;
  /** How long to wait before reconnecting, if the service sent it. */
  retryMs: number | null = null;
  #rest = '';
  #sawReturn = false;
  #event = '';
  #data: string[] = [];
  #id: string;
  #size = 0;

  constructor(lastEventId = '') {
    this.lastEventId = lastEventId;
    this.#id = lastEventId;
  }

  /** Yields the messages that this piece completes. `lastEventId` belongs to the message yielded last. */
  *feed(piece: string): Generator<Message, void, undefined> {
    let text = piece;
    // The previous piece ended in the middle of a \r\n.
    if (this.#sawReturn && text.startsWith('\n')) text = text.slice(1);
    if (piece !== '') this.#sawReturn = piece.endsWith('\r');
    const lines = (this.#rest + text).split(/\r\n|\r|\n/);
    this.#rest = lines.pop()!;
    this.#size += text.length;
    if (this.#size > maxCharacters) {
      const message = `the stream has a message of more than ${maxCharacters} characters`;
      throw new SluiceError({ code: 'unexpected_answer', message });
    }
    for (const line of lines) {
      if (line !== '') {
        this.#field(line);
        continue;
      }
      const message = this.#complete();
      if (message !== null) yield message;
    }
  }

  #complete(): Message | null {
    const message = { event: this.#event || 'message', data: this.#data.join('\n') };
    const isMessage = this.#data.length > 0;
    this.lastEventId = this.#id;
    this.#event = '';
    this.#data = [];
    this.#size = this.#rest.length;
    return isMessage ? message : null;
  }

  #field(line: string): void {
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#data.push(value);
    else if (name === 'event') this.#event = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
  }
}
