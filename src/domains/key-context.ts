// Each sealed key is bound to its row by such a context: copied to another row, it cannot be opened.

export const keyContext = (certificateId: string): string => `certificate key ${certificateId}`;
export const orderKeyContext = (domainId: string): string => `order key ${domainId}`;
export const accountKeyContext = (directory: string): string => `acme account key ${directory}`;
