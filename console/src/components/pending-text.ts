export const pendingText = (count: number): string =>
  `${count} ${count === 1 ? 'change applies' : 'changes apply'} with the next deployment`;
