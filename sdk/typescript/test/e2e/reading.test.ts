import assert from "node:assert/strict";
import { test } from "node:test";
import { type EventRecord, UnknownTopicError } from "@prombus/client";
import { client } from "../support/clients.js";
import { Proxy } from "../support/proxy.js";
import { Server } from "../support/server.js";
import { until } from "../support/waiting.js";

async function all<T>(events: AsyncIterable<EventRecord<T>>): Promise<T[]> {
  const payloads: T[] = [];
  for await (const { payload } of events) payloads.push(payload);
  return payloads;
}

test("replay and export bring every event once, in order, from anywhere", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  const stored = await Promise.all(Array.from({ length: 2_500 }, (_, n) => bus.publish("t", n, { ts: 1_000 + Math.floor(n / 100) })));
  const numbers = Array.from({ length: 2_500 }, (_, n) => n);
  assert.deepEqual(await all(bus.replay("t")), numbers);
  assert.deepEqual(await all(bus.replay("t", { pageSize: 7, limit: 20 })), numbers.slice(0, 20));
  assert.deepEqual(await all(bus.replay("t", { from: "seq", seq: 2_001 })), numbers.slice(2_000));
  assert.deepEqual(await all(bus.replay("t", { from: "afterId", afterId: stored[2_489]?.id ?? "" })), numbers.slice(2_490));
  assert.deepEqual(await all(bus.replay("t", { from: "ts", ts: 1_024 })), numbers.slice(2_400));
  assert.deepEqual(await all(bus.export("t")), numbers);
  assert.deepEqual(await all(bus.export("t", { fromTs: 1_001, toTs: 1_002 })), numbers.slice(100, 300));
  for await (const { payload } of bus.export<number>("t")) if (payload === 10) break;
  await assert.rejects(all(bus.replay("nowhere")), UnknownTopicError);
  await assert.rejects(all(bus.export("t", { signal: AbortSignal.abort() })), { name: "AbortError" });
});

test("an export that is cut goes on behind the last event", async (context) => {
  const server = await Server.start(context, { store: "memory:" });
  const proxy = await Proxy.start(context, server.port);
  const direct = await client(context, server.url);
  const pad = "x".repeat(2_000);
  await Promise.all(Array.from({ length: 5_000 }, (_, n) => direct.publish("t", { n, pad })));
  const bus = await client(context, proxy.url);
  const seen: number[] = [];
  for await (const { payload } of bus.export<{ n: number }>("t")) {
    seen.push(payload.n);
    if (seen.length === 1_000) proxy.cut();
  }
  assert.deepEqual(seen, Array.from({ length: 5_000 }, (_, n) => n));
});

test("a topic is a table: latest events, states now and then, lists", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  const first = await bus.publish("t", { v: 1, on: true }, { key: "a/b", ts: 1_000 });
  await bus.publish("t", { v: 2, on: false }, { key: "a/b", ts: 2_000 });
  await bus.publish("t", { v: 3, on: false }, { key: "c", ts: 2_000 });
  await bus.publish("t", null, { key: "gone", ts: 2_000 });
  const latest = await bus.latestByKey<{ v: number }>("t", ["a/b", "none"]);
  assert.deepEqual([...latest].map(([key, event]) => [key, event.payload.v]), [["a/b", 2]]);
  assert.deepEqual((await all(bus.latestEvents<{ v: number } | null>("t"))).filter((payload) => payload !== null).map((payload) => payload?.v), [2, 3]);
  assert.deepEqual(await bus.stateAt("t", "a/b", 1_500), { key: "a/b", payload: { v: 1, on: true }, ts: 1_000, seq: 1, id: first.id });
  assert.equal((await bus.stateAt<{ v: number }>("t", "a/b"))?.payload.v, 2);
  assert.equal(await bus.stateAt("t", "gone"), undefined);
  assert.equal(await bus.stateAt("t", "never"), undefined);
  const page = await bus.list<{ v: number }>("t", { where: { on: false }, limit: 1 });
  assert.deepEqual([page.total, page.items.map(({ payload }) => payload.v), page.next], [2, [2], 1]);
});

test("a table is loaded and followed without a gap while keys change", async (context) => {
  const server = await Server.start(context);
  const proxy = await Proxy.start(context, server.port);
  const direct = await client(context, server.url);
  const bus = await client(context, proxy.url);
  const expected = new Map<string, number>();
  let count = 0;
  const change = async (): Promise<void> => {
    count += 1;
    const key = `k${count % 97}`;
    if (count % 11 === 0) expected.delete(key);
    else expected.set(key, count);
    await direct.publish("t", count % 11 === 0 ? null : count, { key });
  };
  for (let n = 0; n < 300; n += 1) await change();
  const loading = bus.loadState<number>("t");
  for (let n = 0; n < 300; n += 1) await change();
  await using table = await loading;
  const changes: string[] = [];
  table.onChange(({ key }) => changes.push(key));
  proxy.cut();
  for (let n = 0; n < 100; n += 1) await change();
  const format = (entries: Iterable<[string, number]>): string => JSON.stringify([...entries].sort());
  await until("the table is up to date", () => format([...table.values()].map(({ key, payload }) => [key, payload])) === format(expected));
  assert.ok(changes.length >= 100);
  assert.equal(table.size, expected.size);
});

test("pulling leases, settles and publishes without a socket", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  await bus.publishBatch([1, 2, 3].map((payload) => ({ topic: "t", payload })));
  const [one, two, three] = await bus.pull<number>("t", "g", { from: "earliest", max: 10, waitMs: 5_000 });
  assert.ok(one && two && three);
  assert.deepEqual([one.payload, one.context.attempt, one.context.cursor.lastSeq], [1, 1, 1]);
  await one.ack();
  await two.extend(5_000);
  const stored = await two.ackAndPublish([{ topic: "out", payload: "done" }]);
  assert.deepEqual(stored.map(({ topic, seq }) => [topic, seq]), [["out", 1]]);
  await three.nack("later", 10);
  const [again] = await bus.pull<number>("t", "g", { max: 1, waitMs: 5_000 });
  assert.deepEqual([again?.payload, again?.context.attempt], [3, 2]);
  await again?.ack();
  assert.equal((await bus.getCursor("t", "g"))?.lastSeq, 3);
});
