import assert from "node:assert/strict";
import { test } from "node:test";
import { type DeliveryContext, type EventBus, type EventRecord, MemoryDedupe, PrombusEventBus, subscribeExactlyOnce } from "@prombus/client";
import { cleanUp } from "../support/cleanup.js";
import { client } from "../support/clients.js";
import { Server } from "../support/server.js";
import { until } from "../support/waiting.js";

/** A service as it is written against the interface. */
async function service(bus: EventBus, seen: string[]): Promise<() => Promise<void>> {
  const handler = async (event: EventRecord, ctx: DeliveryContext): Promise<void> => {
    seen.push(`${String(event.payload)} ${ctx.attempt}/${ctx.maxAttempts} ${ctx.cursor.lastSeq}`);
  };
  await bus.publish("t", "a", { key: "k", tags: ["#x"] });
  return bus.subscribe("t", "g", handler, { from: "earliest", maxAttempts: 3 });
}

test("a service written against EventBus runs on the server", async (context) => {
  const server = await Server.start(context);
  const bus = new PrombusEventBus({ url: server.url });
  cleanUp(context, () => bus.close());
  const seen: string[] = [];
  const unsubscribe = await service(bus, seen);
  await until("it came", () => seen.length === 1);
  assert.deepEqual(seen, ["a 1/3 1"]);
  await unsubscribe();
  const cursor = await bus.getCursor("t", "g");
  assert.deepEqual([cursor?.topic, cursor?.lastSeq], ["t", 1]);
  await bus.setCursor("t", "g", { topic: "t" });
  assert.equal((await bus.getCursor("t", "g"))?.lastSeq, 0);
  await bus.setCursor("t", "g", cursor ?? { topic: "t" });
  assert.equal((await bus.getCursor("t", "g"))?.lastSeq, 1);
  assert.equal(await bus.getCursor("nowhere", "g"), null);
});

test("a manual service settles by topic, group and id", async (context) => {
  const server = await Server.start(context);
  const bus = new PrombusEventBus(await client(context, server.url));
  for (const payload of [1, 2]) await bus.publish("t", payload);
  const seen: string[] = [];
  const unsubscribe = await bus.subscribe("t", "g", async (event, { attempt }) => {
    seen.push(`${String(event.payload)}.${attempt}`);
    const isFirst = event.payload === 1 && attempt === 1;
    const settled = isFirst ? await bus.nack("t", "g", event.id, "not yet") : await bus.ack("t", "g", event.id);
    assert.deepEqual(settled, { id: event.id, ok: true });
  }, { from: "earliest", manualAck: true });
  await until("all are settled", async () => (await bus.getCursor("t", "g"))?.lastSeq === 2);
  assert.deepEqual([...seen].sort(), ["1.1", "1.2", "2.1"]);
  await unsubscribe();
  const unknown = await bus.ack("t", "g", "no-such-id");
  assert.equal(unknown.ok, false);
  assert.match(unknown.err ?? "", /unknown_id/);
});

test("a handler that succeeded is not run again after the cursor is set back, one that failed is", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  for (let n = 0; n < 5; n += 1) await bus.publish("t", n);
  const dedupe = new MemoryDedupe();
  const runs: string[] = [];
  const handler = ({ payload, attempt }: { payload: unknown; attempt: number }): void => {
    runs.push(`${String(payload)}.${attempt}`);
    if (payload === 3 && attempt === 1) throw new Error("once more");
  };
  const first = await subscribeExactlyOnce(bus, dedupe, "t", "g", handler, { from: "earliest" });
  await until("all are settled", async () => (await bus.getCursor("t", "g"))?.lastSeq === 5);
  await first.unsubscribe();
  await bus.seek("t", "g", { from: "earliest" });
  assert.equal((await bus.getCursor("t", "g"))?.lastSeq, 0);
  const second = await subscribeExactlyOnce(bus, dedupe, "t", "g", handler);
  await until("all are settled again", async () => (await bus.getCursor("t", "g"))?.lastSeq === 5);
  await second.unsubscribe();
  assert.deepEqual([...runs].sort(), ["0.1", "1.1", "2.1", "3.1", "3.2", "4.1"]);
});
