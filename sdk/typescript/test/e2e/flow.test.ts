import assert from "node:assert/strict";
import { test } from "node:test";
import { QueueFullError, RateLimitedError } from "@prombus/client";
import { client } from "../support/clients.js";
import { Server } from "../support/server.js";
import { pause, signal, until } from "../support/waiting.js";

/** `SDK_WAITING=2000000` runs more. */
const WAITING = Number(process.env["SDK_WAITING"] ?? 200_000);
const LIMITS = "[limits]\nconn_publish = { capacity = 50, refill_per_sec = 500 }\n";

test("a rate limit is waited out, unless that is turned off", async (context) => {
  const server = await Server.start(context, { config: LIMITS, store: "memory:" });
  const bus = await client(context, server.url);
  const stored = await Promise.all(Array.from({ length: 400 }, (_, n) => bus.publish("t", n)));
  assert.equal(new Set(stored.map(({ seq }) => seq)).size, 400);
  const burst = await Promise.allSettled(Array.from({ length: 200 }, (_, n) => bus.publish("t", n, { waitForRateLimit: false })));
  const rejected = burst.filter((result) => result.status === "rejected").map((result) => (result as PromiseRejectedResult).reason as unknown);
  assert.ok(rejected.length > 0);
  for (const error of rejected) {
    assert.ok(error instanceof RateLimitedError && error.retryable && (error.retryAfterMs ?? 0) > 0, String(error));
  }
});

test("memory is flat while a handler sleeps and many events wait", async (context) => {
  const server = await Server.start(context, { store: "memory:" });
  const publisher = await client(context, server.url);
  const pad = "x".repeat(200);
  for (let at = 0; at < WAITING; at += 5_000) {
    await Promise.all(Array.from({ length: Math.min(5_000, WAITING - at) }, () => publisher.publish("t", pad)));
  }
  const consumer = await client(context, server.url);
  const release = signal();
  let begun = 0;
  let handled = 0;
  const subscription = await consumer.subscribe("t", "g", async () => {
    begun += 1;
    await release.promise;
    handled += 1;
  }, { from: "earliest", maxInFlight: 500 });
  await until("the first is being handled", () => begun === 1);
  const collect = globalThis.gc;
  assert.ok(collect, "run with --expose-gc");
  collect();
  const before = process.memoryUsage().heapUsed;
  await pause(1_500);
  collect();
  const grown = process.memoryUsage().heapUsed - before;
  assert.ok(grown < 2 << 20, `the heap grew by ${grown} bytes`);
  assert.equal(begun, 1);
  release.resolve();
  await until("the flow goes on", () => handled > 2_000);
  await subscription.unsubscribe();
});

test("publishes that wait have a limit", async (context) => {
  const server = await Server.start(context, { store: "memory:" });
  const bus = await client(context, server.url, { maxQueued: 100, maxInFlight: 10 });
  const results = await Promise.allSettled(Array.from({ length: 300 }, (_, n) => bus.publish("t", n)));
  const rejected = results.filter((result) => result.status === "rejected");
  assert.equal(rejected.length, 200);
  for (const { reason } of rejected) assert.ok(reason instanceof QueueFullError && reason.retryable);
  assert.equal((await bus.publish("t", "room again")).seq, 101);
});
