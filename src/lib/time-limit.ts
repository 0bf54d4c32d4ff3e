export interface TimeLimit {
  /** From now on it has all its time again. */
  restart(): void;
  end(): void;
}

/**
 * Calls back when the time is over. A process that stood still for that long first reads what has arrived meanwhile: an
 * answer that was there in time counts.
 */
export function limitTime(limitMs: number, onOver: () => void): TimeLimit {
  let isDue = false;
  const timer = setTimeout(() => {
    isDue = true;
    // Between timers and immediates the event loop reads from sockets.
    setImmediate(() => isDue && onOver());
  }, limitMs);
  return {
    restart() {
      isDue = false;
      timer.refresh();
    },
    end() {
      isDue = false;
      clearTimeout(timer);
    },
  };
}
