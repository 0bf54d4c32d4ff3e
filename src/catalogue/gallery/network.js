// Networks change while somebody watches: from one Wi-Fi to another, or when a tunnel opens. A browser then gives up what it
// is loading, although the next request would succeed.
const DELAYS_MS = [100, 500, 2000, 5000];

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Does it again while it gets no answer at all, which `fetch` reports as a TypeError. Any answer counts. */
export async function again(run) {
  for (const delayMs of DELAYS_MS) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
    }
    await pause(delayMs);
  }
  return run();
}

/** hls.js by itself takes a request without an answer for the end of the stream unless the browser knows that it is offline. */
export function patientPolicies({ DefaultConfig }) {
  const shouldRetry = ({ maxNumRetry }, count, _isTimeout, response, retry) =>
    retry || (count < maxNumRetry && !response?.code);
  const patient = (policy) => ({
    default: { ...policy, errorRetry: { ...policy.errorRetry, maxNumRetry: 6, retryDelayMs: 250, shouldRetry } },
  });
  const names = ['manifestLoadPolicy', 'playlistLoadPolicy', 'fragLoadPolicy'];
  return Object.fromEntries(names.map((name) => [name, patient(DefaultConfig[name].default)]));
}

/** What the video does without hls.js: `load` begins it anew where it was. Gives false once it has failed too often in a row. */
export function reloadsOf(load) {
  let failures = 0;
  return {
    succeeded() {
      failures = 0;
    },
    failed({ code }) {
      // Before the first byte a lost network looks like a file of an unknown format.
      const most = code === MediaError.MEDIA_ERR_NETWORK ? DELAYS_MS.length : 2;
      if (code === MediaError.MEDIA_ERR_DECODE || failures >= most) return false;
      setTimeout(load, DELAYS_MS[failures++]);
      return true;
    },
  };
}
