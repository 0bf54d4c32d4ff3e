// What verify found. A fault breaks something a client relies on; a note is worth knowing.
export interface Findings {
  fault(text: string): void;
  note(text: string): void;
}

export class FindingList implements Findings {
  readonly faults: string[] = [];
  readonly notes: string[] = [];

  fault(text: string): void {
    this.faults.push(text);
  }

  note(text: string): void {
    this.notes.push(text);
  }
}
