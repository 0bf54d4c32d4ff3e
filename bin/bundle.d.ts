export function sourceStamp(): string | null;
export function isCurrent(): boolean;
export function writeStamp(stamp: string): void;
export function runBundled(name: string): Promise<void>;
