/** What a sealed key belongs to: one copied to another row does not open there. */
export const keyContext = (certificateId: string): string => `certificate key ${certificateId}`;
export const orderKeyContext = (domainId: string): string => `order key ${domainId}`;
export const accountKeyContext = (directory: string): string => `acme account key ${directory}`;
