// A revision is `r` and its number, counted per environment.

export const revisionId = (number: number): string => `r${number}`;

export const revisionNumber = (id: string): number => Number(id.slice(1));
