import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client, Delivery } from "@prombus/client";
import { client } from "../support/clients.js";
import { Server } from "../support/server.js";
import { pause, signal, until } from "../support/waiting.js";

async function fill(bus: Client, topic: string, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => bus.publish(topic, n, { key: `k${n % 3}` })));
}

test("a handler gets every event once, in order, with its context", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  await fill(bus, "t", 250);
  const seen: Delivery[] = [];
  const subscription = await bus.subscribe("t", "g", (delivery) => void seen.push(delivery), { from: "earliest", maxInFlight: 20, maxAttempts: 7 });
  await until("all came", () => seen.length === 250);
  assert.deepEqual(seen.map(({ payload }) => payload), Array.from({ length: 250 }, (_, n) => n));
  const [first] = seen;
  assert.ok(first);
  const { id, ts } = first.event;
  assert.deepEqual(first.context, { attempt: 1, maxAttempts: 7, cursor: { topic: "t", lastId: id, lastTs: ts, lastSeq: 1 } });
  await subscription.unsubscribe();
  assert.deepEqual((await bus.getCursor("t", "g"))?.lastSeq, 250);
});

test("what throws comes again and is dead-lettered with the error's message", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  await bus.publish("t", "bad");
  await bus.publish("t", "good");
  const attempts: string[] = [];
  await bus.subscribe("t", "g", async ({ payload, attempt }) => {
    attempts.push(`${String(payload)} ${attempt}`);
    if (payload === "bad") throw new Error("cannot digest this");
  }, { from: "earliest", maxAttempts: 3 });
  const deadLetters: { err: string; attempts: number; original: { payload: unknown } }[] = [];
  await bus.subscribe<(typeof deadLetters)[number]>("dlq.t", "deadLetters", ({ payload }) => void deadLetters.push(payload), { from: "earliest" });
  await until("the dead letter came", () => deadLetters.length === 1);
  assert.deepEqual(attempts.filter((text) => text.startsWith("bad")), ["bad 1", "bad 2", "bad 3"]);
  assert.deepEqual(attempts.filter((text) => text.startsWith("good")), ["good 1"]);
  const [deadLetter] = deadLetters;
  assert.match(deadLetter?.err ?? "", /cannot digest this/);
  assert.equal(deadLetter?.attempts, 3);
  assert.equal(deadLetter?.original.payload, "bad");
});

test("the lease of a slow handler, and of what waits behind it, is extended up to the ceiling", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  await fill(bus, "slow", 4);
  const seen: string[] = [];
  await bus.subscribe("slow", "g", async ({ payload, attempt }) => {
    seen.push(`${String(payload)}.${attempt}`);
    await pause(1_200);
  }, { from: "earliest", ackTimeoutMs: 1_000 });
  await until("all are handled", async () => (await bus.getCursor("slow", "g"))?.lastSeq === 4);
  assert.deepEqual(seen, ["0.1", "1.1", "2.1", "3.1"]);

  const attempts: number[] = [];
  const stuck = signal();
  await bus.publish("stuck", 1);
  const first = await bus.subscribe("stuck", "g", async ({ attempt }) => {
    attempts.push(attempt);
    await stuck.promise;
  }, { from: "earliest", ackTimeoutMs: 1_000, maxExtensionMs: 1 });
  await until("it is being handled", () => attempts.length === 1);
  const other = await client(context, server.url);
  await other.subscribe("stuck", "g", ({ attempt }) => void attempts.push(attempt), { ackTimeoutMs: 1_000 });
  await until("another member got it", () => attempts.length >= 2);
  stuck.resolve();
  await first.unsubscribe();
  assert.ok((attempts.at(-1) ?? 0) >= 2);
});

test("as many handlers run as concurrency says", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  await fill(bus, "t", 40);
  let running = 0;
  let most = 0;
  let handled = 0;
  await bus.subscribe("t", "g", async () => {
    running += 1;
    most = Math.max(most, running);
    await pause(5);
    running -= 1;
    handled += 1;
  }, { from: "earliest", concurrency: 8 });
  await until("all are handled", () => handled === 40);
  assert.equal(most, 8);
});

test("manual deliveries are settled by their taker, each way", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  await fill(bus, "t", 3);
  const taken: string[] = [];
  for await (const delivery of bus.consume("t", "g", { from: "earliest" })) {
    taken.push(`${String(delivery.payload)}.${delivery.attempt}`);
    if (delivery.payload === 1 && delivery.attempt === 1) delivery.nack("not now", 50);
    else await delivery.ackConfirmed();
    if (taken.length === 4) break;
  }
  assert.deepEqual(taken.slice(0, 2), ["0.1", "1.1"]);
  assert.deepEqual([...taken].sort(), ["0.1", "1.1", "1.2", "2.1"]);
  assert.equal((await bus.getCursor("t", "g"))?.lastSeq, 3);
});

test("a result and its acknowledgement are one step", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  await bus.publish("in", 20);
  const results: unknown[] = [];
  await bus.subscribe<number>("in", "g", async (delivery) => {
    const rejected = delivery.ackAndPublish([{ topic: "not a topic", payload: 1 }]);
    await assert.rejects(rejected, { code: "bad_topic" });
    const stored = await delivery.ackAndPublish([{ topic: "out", payload: delivery.payload + 1, opts: { key: "k" } }, { topic: "out", payload: 0 }]);
    results.push(...stored.map(({ topic, seq, payload }) => `${topic} ${seq} ${payload}`));
  }, { from: "earliest" });
  await until("it is handled", () => results.length === 2);
  assert.deepEqual(results, ["out 1 21", "out 2 0"]);
  await until("it is settled", async () => (await bus.getCursor("in", "g"))?.lastSeq === 1);
});

test("pause stops the flow, resume lets it go on, unsubscribe waits for handlers", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  let handled = 0;
  const subscription = await bus.subscribe("t", "g", () => void (handled += 1), { from: "earliest", maxInFlight: 10 });
  await fill(bus, "t", 20);
  await until("the first came", () => handled === 20);
  subscription.pause();
  await fill(bus, "t", 200);
  await pause(300);
  assert.ok(handled <= 30, `${handled} handled while paused`);
  subscription.resume();
  await until("the rest came", () => handled === 220);

  const begun = signal();
  const release = signal();
  let finished = false;
  const slow = await bus.subscribe("t", "slow", async () => {
    begun.resolve();
    await release.promise;
    finished = true;
  }, { from: "earliest" });
  await begun.promise;
  const left = slow.unsubscribe();
  setTimeout(release.resolve, 100);
  await left;
  assert.equal(finished, true);
  assert.equal((await bus.getCursor("t", "slow"))?.lastSeq, 1);
});

test("patterns, fan-in, filters, key order and ephemeral groups", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  const byPattern: string[] = [];
  const byList: string[] = [];
  const filtered: unknown[] = [];
  const odd: unknown[] = [];
  await bus.publish("p.a", 0);
  await bus.publish("q", 0);
  await bus.subscribe("p.*", "g", ({ event }) => void byPattern.push(event.topic), { from: "earliest" });
  await bus.subscribe("p.a", "fan", ({ event }) => void byList.push(event.topic), { from: "earliest", topics: ["q"] });
  await bus.subscribe("f", "wire", ({ payload }) => void filtered.push(payload), { from: "earliest", filter: { key: "k1" } });
  await bus.subscribe<number>("f", "function", ({ payload }) => void odd.push(payload), { from: "earliest", filter: ({ payload }) => payload % 2 === 1 });
  const ephemeral: unknown[] = [];
  const made = await bus.subscribe("f", null, ({ payload }) => void ephemeral.push(payload));
  assert.notEqual(made.group, "");
  await bus.publish("p.b", 0);
  await fill(bus, "f", 9);
  await until("all came", () => byPattern.length === 2 && byList.length === 2 && filtered.length === 3 && odd.length === 4 && ephemeral.length === 9);
  assert.deepEqual(byPattern, ["p.a", "p.b"]);
  assert.deepEqual([...byList].sort(), ["p.a", "q"]);
  assert.deepEqual(filtered, [1, 4, 7]);
  assert.deepEqual(odd, [1, 3, 5, 7]);
  await until("what the function filters out is settled", async () => (await bus.getCursor("f", "function"))?.lastSeq === 9);

  const running = new Set<string>();
  const order: number[] = [];
  await bus.subscribe<number>("f", "keyed", async ({ event }) => {
    assert.equal(running.has(event.key ?? ""), false, "two of one key at a time");
    running.add(event.key ?? "");
    await pause(5);
    running.delete(event.key ?? "");
    order.push(event.payload);
  }, { from: "earliest", ordering: "key", concurrency: 9 });
  await until("all are handled", () => order.length === 9);
  for (const rest of [0, 1, 2]) assert.deepEqual(order.filter((n) => n % 3 === rest), [rest, rest + 3, rest + 6]);
});

test("a signal ends a subscription and a loop", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  const stop = new AbortController();
  const subscription = await bus.subscribe("t", "g", () => undefined, { signal: stop.signal });
  const loop = (async () => {
    for await (const delivery of bus.consume("t", "loop", { signal: stop.signal })) delivery.ack();
  })();
  setTimeout(() => stop.abort(), 100);
  await assert.rejects(loop, { name: "AbortError" });
  assert.equal(await subscription.done, undefined);
  await bus.publish("t", 1);
  await assert.rejects(bus.subscribe("t", "fresh", () => undefined, { from: "afterId", afterId: "unknown" }), { code: "unknown_id" });
});

test("what waited while paused is acknowledged after resume, without any other traffic", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  await fill(bus, "t", 5);
  const begun = signal();
  const release = signal();
  const subscription = await bus.subscribe<number>("t", "g", ({ payload }) => {
    if (payload !== 0) return undefined;
    begun.resolve();
    return release.promise;
  }, { from: "earliest" });
  await begun.promise;
  subscription.pause();
  release.resolve();
  await until("the first is settled", async () => (await bus.getCursor("t", "g"))?.lastSeq === 1);
  await pause(50);
  assert.equal((await bus.getCursor("t", "g"))?.lastSeq, 1, "the others wait");
  subscription.resume();
  await until("all are settled", async () => (await bus.getCursor("t", "g"))?.lastSeq === 5);
});

test("trace context travels with events into handlers", async (context) => {
  const server = await Server.start(context);
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  let current = "none";
  const trace = {
    inject: () => ({ traceparent }),
    extract: <R>(headers: Readonly<Record<string, string>>, run: () => R): R => {
      current = headers["traceparent"] ?? "absent";
      return run();
    },
  };
  const bus = await client(context, server.url, { trace });
  const { headers } = await bus.publish("t", 1, { headers: { "x-own": "kept" } });
  assert.deepEqual(headers, { traceparent, "x-own": "kept" });
  const seen: string[] = [];
  await bus.subscribe("t", "g", async (delivery) => {
    seen.push(current);
    await delivery.ackAndPublish([{ topic: "out", payload: 2 }]);
  }, { from: "earliest" });
  await until("it is handled", async () => (await bus.getCursor("t", "g"))?.lastSeq === 1);
  assert.deepEqual(seen, [traceparent]);
  assert.deepEqual((await bus.replay("out").next()).value?.headers, { traceparent });
});
