// Whether a source may be published. A damaged one may, where the manifest allows it; one whose picture or sound changes its
// format on the way may not, because what is made of it would be wrong.
import { CatalogueError } from '../../fault.ts';
import type { Complaint } from './complaints.ts';
import type { PacketTimes } from './packets.ts';

/** Headers round, and tracks rarely end together: less than this is no loss. */
const slackOf = (seconds: number) => 0.5 + seconds * 0.005;
const MOST_NAMED = 5;

export class SourceJudge {
  #path: string;
  #allowDamaged: boolean;
  #times: PacketTimes | null = null;
  /** Damage that was found and is allowed. */
  readonly allowed: string[] = [];

  constructor(path: string, allowDamaged: boolean) {
    this.#path = path;
    this.#allowDamaged = allowDamaged;
  }

  get videoEndS(): number {
    return this.#times?.videoEndS ?? 0;
  }

  onComplaint = (complaint: Complaint): CatalogueError | null => {
    if (complaint.kind === 'damage') return this.#damage(complaint.text);
    const what =
      complaint.kind === 'picture_change' ? 'its picture changes its size' : 'its sound changes its channels';
    return new CatalogueError(`${this.#path}: ${what} in mid-stream; convert it to one format first`);
  };

  /** What the container promises against the packets it has. */
  checkPackets(times: PacketTimes, declaredS: number | null): void {
    this.#times = times;
    if (declaredS === null || times.endS >= declaredS - slackOf(declaredS)) return;
    this.#throwDamage(`it ends after ${times.endS.toFixed(1)} of ${declaredS.toFixed(1)} s`);
  }

  /** The packets it has against what could be decoded of them. */
  checkDecoded(seconds: number): void {
    if (seconds >= this.videoEndS - slackOf(this.videoEndS)) return;
    this.#throwDamage(`only ${seconds.toFixed(1)} of ${this.videoEndS.toFixed(1)} s can be decoded`);
  }

  #throwDamage(text: string): void {
    const error = this.#damage(text);
    if (error !== null) throw error;
  }

  #damage(text: string): CatalogueError | null {
    if (!this.#allowDamaged)
      return new CatalogueError(`${this.#path} is damaged: ${text} (allow_damaged: yes publishes what can be decoded)`);
    if (this.allowed.length < MOST_NAMED && !this.allowed.includes(text)) this.allowed.push(text);
    return null;
  }
}
