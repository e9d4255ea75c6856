/** Waiting for something to become true, with a limit that is far beyond what a loaded machine needs. */

const LIMIT_MS = 60_000;

export async function until(what: string, test: () => boolean | Promise<boolean>, limitMs = LIMIT_MS): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await test())) {
    if (Date.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await pause(10);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A promise that somebody else resolves. */
export function signal<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((done) => (resolve = done));
  return { promise, resolve };
}
