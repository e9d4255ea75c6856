import assert from "node:assert/strict";
import { test } from "node:test";
import { BadJsonError, BadTopicError, ClosedError, connect, IdConflictError, PrombusError, TooLargeError } from "@prombus/client";
import { client } from "../support/clients.js";
import { Server } from "../support/server.js";

test("a publish resolves to the stored record with all its options", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  const options = { id: "mine-1", ts: 1_700_000_000_000, key: "k", headers: { "x-a": "b" }, tags: ["#t"], caused_by: ["other"], sid: "boot" };
  const stored = await bus.publish("orders.made", { n: 1, deep: [1, { a: null }] }, options);
  const expected = { ...options, topic: "orders.made", seq: 1, payload: { n: 1, deep: [1, { a: null }] } };
  assert.deepEqual(stored, expected);
  const replayed = [];
  for await (const event of bus.replay("orders.made")) replayed.push(event);
  assert.deepEqual(replayed, [expected]);
});

test("a thousand calls that are not awaited share few messages and keep their order", async (context) => {
  const server = await Server.start(context);
  let messages = 0;
  const { WebSocket } = await import("ws");
  class Counting extends WebSocket {
    override send(data: string): void {
      messages += 1;
      super.send(data);
    }
  }
  const bus = await client(context, server.url, { webSocket: Counting as never });
  const before = messages;
  const stored = await Promise.all(Array.from({ length: 1_000 }, (_, n) => bus.publish("many", n)));
  assert.deepEqual(stored.map(({ seq }) => seq), Array.from({ length: 1_000 }, (_, at) => at + 1));
  assert.ok(messages - before <= 20, `${messages - before} messages`);
});

test("an id that the topic holds stores nothing, and another payload under it is a conflict", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  const first = await bus.publish("t", { a: 1 }, { id: "same" });
  const second = await bus.publish("t", { a: 1 }, { id: "same" });
  assert.equal(first.duplicate, undefined);
  assert.deepEqual([second.seq, second.duplicate], [first.seq, true]);
  await assert.rejects(bus.publish("t", { a: 2 }, { id: "same" }), (error) => error instanceof IdConflictError && error.code === "id_conflict" && !error.retryable);
});

test("a batch has one outcome for each event", async (context) => {
  const server = await Server.start(context, { config: "[limits]\nmax_payload_bytes = 1000\n" });
  const bus = await client(context, server.url);
  const results = await bus.publishBatch([
    { topic: "a", payload: 1 },
    { topic: "not a topic", payload: 2 },
    { topic: "a", payload: "x".repeat(2_000) },
    { topic: "a", payload: undefined },
    { topic: "a", payload: 3, opts: { key: "k" } },
  ]);
  assert.deepEqual(results.map((result) => (result.ok ? result.record.seq : result.error.code)), [1, "bad_topic", "too_large", "bad_json", 2]);
  await assert.rejects(bus.publish("not a topic", 1), BadTopicError);
  await assert.rejects(bus.publish("a", "x".repeat(2_000)), TooLargeError);
  await assert.rejects(bus.publish("a", () => 1), BadJsonError);
});

test("signals end publishing, connecting and the client", async (context) => {
  const server = await Server.start(context);
  const stop = new AbortController();
  const bus = await client(context, server.url, { signal: stop.signal });
  await assert.rejects(bus.publish("t", 1, { signal: AbortSignal.abort() }), { name: "AbortError" });
  await bus.publish("t", 2, { signal: new AbortController().signal });
  await assert.rejects(connect({ url: server.url, signal: AbortSignal.abort() }), { name: "AbortError" });
  const closed = new Promise((resolve) => bus.on("closed", resolve));
  stop.abort();
  await closed;
  assert.equal(bus.state, "closed");
  await assert.rejects(bus.publish("t", 3), ClosedError);
});

test("a server that is not there, a wrong url and a wrong option have codes of their own", async () => {
  const code = (error: unknown): boolean => error instanceof PrombusError && error.code === "unreachable" && error.retryable;
  await assert.rejects(connect({ url: "ws://127.0.0.1:1" }), code);
  await assert.rejects(connect({ url: "nonsense" }), { code: "bad_option" });
  await assert.rejects(connect({ url: "ftp://x" }), { code: "bad_option" });
  await assert.rejects(connect({ url: "ws://127.0.0.1:1", maxInFlight: 0 }), { code: "bad_option" });
});

test("close waits for the replies to what was published", async (context) => {
  const server = await Server.start(context);
  const bus = await connect({ url: server.url });
  const sent = Array.from({ length: 500 }, (_, n) => bus.publish("t", n));
  await bus.close();
  assert.equal((await Promise.all(sent)).length, 500);
});
