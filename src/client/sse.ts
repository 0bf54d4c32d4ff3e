// Server-sent events, parsed as the HTML standard says, from text that comes in pieces.
import { SluiceError } from './error.ts';

export interface Message {
  /** The name it was sent under; `message` where it had none. */
  event: string;
  data: string;
}

const maxCharacters = 16 * 1024 * 1024;

export class MessageParser {
  /** What to resume after: of the last message that was complete. */
  lastEventId: string;
  /** How long to wait before coming back, if the service said so. */
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

  /** The messages that this piece completes. `lastEventId` is right for each while it is being looked at. */
  *feed(piece: string): Generator<Message, void, undefined> {
    let text = piece;
    // The second half of a line end whose first half was the last character of the piece before.
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
