/** Waiting, and jitter. Timers here do not keep a process alive by themselves. */

/** A timer that does not keep a Node process alive. */
export function background(call: () => void, afterMs: number): ReturnType<typeof setTimeout> {
  // Longer timers would fire at once.
  const timer = setTimeout(call, Math.min(afterMs, 0x7fffffff));
  (timer as { unref?: () => void }).unref?.();
  return timer;
}

/** Waits, and rejects with the signal's reason when it is aborted before. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** The pause before attempt number `attempt`, from 1; `chance` (0 to 1) spreads it over its second half. */
export function backoffMs(baseMs: number, capMs: number, attempt: number, chance: number): number {
  const whole = Math.min(capMs, baseMs * 2 ** Math.min(attempt - 1, 30));
  return whole / 2 + (whole / 2) * chance;
}

/** Rejects with the signal's reason when it is aborted before the promise is settled. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
