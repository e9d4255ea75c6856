/** Cleaning up after a test: what was made last goes first. */

import type { TestContext } from "node:test";

const pending = new WeakMap<object, (() => unknown)[]>();

export function cleanUp(context: Pick<TestContext, "after">, call: () => unknown): void {
  const known = pending.get(context);
  if (known) return void known.push(call);
  const calls = [call];
  pending.set(context, calls);
  context.after(async () => {
    for (const each of calls.reverse()) await each();
  });
}
