// The thumbnail track: WebVTT cues that name a part of a sheet, as video players read it.
import { sheetName, type ThumbnailSheet } from './encode-args.ts';

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
