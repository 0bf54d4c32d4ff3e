// A background loop: runs a step, waits for the interval or a wake-up, and never runs two steps at once. A step that
// throws is reported and the loop goes on; stop() lets the running step finish.

export interface Loop {
  /** Run the next step as soon as possible, whatever the interval says. */
  wake(): void;
  stop(): Promise<void>;
}

export interface LoopOptions {
  intervalMs: number;
  step: () => Promise<void>;
  onError: (error: unknown) => void;
}

export function startLoop({ intervalMs, step, onError }: LoopOptions): Loop {
  let stopped = false;
  let woken = false;
  let rouse: (() => void) | null = null;

  const rest = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, intervalMs);
      rouse = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  const running = (async () => {
    while (!stopped) {
      woken = false;
      try {
        await step();
      } catch (error) {
        onError(error);
      }
      if (!stopped && !woken) await rest();
      rouse = null;
    }
  })();

  return {
    wake() {
      woken = true;
      rouse?.();
    },
    stop() {
      stopped = true;
      rouse?.();
      return running;
    },
  };
}
