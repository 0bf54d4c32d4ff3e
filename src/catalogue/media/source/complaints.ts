// What ffmpeg's messages mean for a source. ffmpeg goes on after most errors and ends with code 0, so the lines it writes
// are the only sign that a picture was made up or that part of the film is missing. Pure.

/** Messages with their levels; builds before 2020 tell a change of the picture as mere information. */
export const COMPLAINT_LEVEL = ['-v', 'level+info'];

export type Complaint =
  /** Something could not be read or decoded. */
  | { kind: 'damage'; text: string }
  /** The picture has another size or pixel format than at the start. */
  | { kind: 'picture_change' }
  /** The sound has another rate or another number of channels than at the start. */
  | { kind: 'sound_change' }
  | { kind: 'disk_full' };

/** Said of files that are whole. */
const harmless = /QT chapter track not found|Last message repeated/;
/** Only warnings to ffmpeg, and yet something is missing. */
const missing = /corrupt|truncat|partial file|ended prematurely/i;
/** What a message says, without the part of ffmpeg that says it and its address in memory. */
const MESSAGE = /^(?:\[[^\]]* @ 0x[0-9a-f]+\] )*\[(info|warning|error|fatal|panic)\] (.*)$/;

export function complaintIn(line: string): Complaint | null {
  const match = MESSAGE.exec(line);
  if (match === null) return null;
  const [, level, text] = match as unknown as [string, string, string];
  if (/No space left on device/.test(text)) return { kind: 'disk_full' };
  if (/^Changing (?:video )?frame properties on the fly/.test(text)) return { kind: 'picture_change' };
  if (/^Changing audio frame properties on the fly/.test(text)) return { kind: 'sound_change' };
  if (harmless.test(text)) return null;
  if (level === 'info' || (level === 'warning' && !missing.test(text))) return null;
  return { kind: 'damage', text };
}
