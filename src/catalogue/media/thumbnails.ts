// Thumbnails: how they lie on their sheets, and the track of WebVTT cues that name a part of a sheet, as players read it.
import { sizeIn } from './rungs.ts';
import type { SourceFacts } from './source/probe.ts';
import { rateOf, secondFrames } from './timing.ts';

const THUMBNAIL_BOX = { label: '', width: 192, height: 108, video_kbps: 0, audio_kbps: 0 };
const MOST_THUMBNAILS = 400;

/** How the thumbnails lie on their sheets. */
export interface ThumbnailSheet {
  width: number;
  height: number;
  columns: number;
  rows: number;
  /** Source frames from one thumbnail to the next. */
  step: number;
  seconds: number;
}

const sheetName = (number: number) => `thumbs-${String(number).padStart(3, '0')}.jpg`;

export function thumbnailSheet(facts: SourceFacts, durationS: number): ThumbnailSheet {
  const every = Math.max(1, Math.ceil(durationS / MOST_THUMBNAILS));
  const step = secondFrames(facts.rate) * every;
  const seconds = step / rateOf(facts.rate);
  const count = Math.max(1, Math.ceil(durationS / seconds));
  const columns = Math.min(10, count);
  return { ...sizeIn(facts, THUMBNAIL_BOX), columns, rows: Math.min(10, Math.ceil(count / columns)), step, seconds };
}

function clock(seconds: number): string {
  const ms = Math.round(seconds * 1000);
  const part = (value: number, width: number) => String(value).padStart(width, '0');
  const [hours, minutes] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60];
  return `${part(hours, 2)}:${part(minutes, 2)}:${part(Math.floor(ms / 1000) % 60, 2)}.${part(ms % 1000, 3)}`;
}

export function thumbnailTrack(sheet: ThumbnailSheet, durationS: number): string {
  const count = Math.max(1, Math.ceil(durationS / sheet.seconds - 0.001));
  const perSheet = sheet.columns * sheet.rows;
  const cues = Array.from({ length: count }, (_, i) => {
    const place = i % perSheet;
    const x = (place % sheet.columns) * sheet.width;
    const y = Math.floor(place / sheet.columns) * sheet.height;
    const to = Math.min((i + 1) * sheet.seconds, durationS);
    const file = sheetName(Math.floor(i / perSheet) + 1);
    return `${clock(i * sheet.seconds)} --> ${clock(to)}\n${file}#xywh=${x},${y},${sheet.width},${sheet.height}\n`;
  });
  return `WEBVTT\n\n${cues.join('\n')}`;
}
