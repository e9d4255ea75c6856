/** The outbox and marks on `node:sqlite`; run by `newer_node.test.ts` with a Node that has it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type OutboxStore, runOutboxDrainer, subscribeExactlyOnce } from "@prombus/client";
import { type SqliteDatabase, SqliteDedupe, SqliteOutbox } from "@prombus/client/sqlite";
import { client } from "../support/clients.js";
import { Server } from "../support/server.js";
import { until } from "../support/waiting.js";

/** Its types are not those of the oldest Node that is supported. */
const { DatabaseSync } = (await import("node:sqlite" as string)) as { DatabaseSync: new (path: string) => SqliteDatabase };

test("rows are published in order, once, under their ids, and only those of committed transactions", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  const database = new DatabaseSync(":memory:");
  const outbox = new SqliteOutbox(database);
  database.exec("CREATE TABLE orders (n INTEGER)");
  for (let n = 0; n < 500; n += 1) {
    database.exec("BEGIN");
    database.prepare("INSERT INTO orders VALUES (?)").run(n);
    outbox.add({ topic: "orders", payload: { n }, opts: { key: `k${n % 5}`, headers: { "x-n": String(n) }, tags: ["#o"] } });
    database.exec(n % 2 === 0 ? "COMMIT" : "ROLLBACK");
  }
  const drainer = runOutboxDrainer(outbox, bus, { batchSize: 64, intervalMs: 10 });
  const state = (): unknown => database.prepare("SELECT state, count(*) AS n FROM prombus_outbox GROUP BY state").all().map((row) => ({ ...(row as object) }));
  await until("all are sent", () => JSON.stringify(state()) === JSON.stringify([{ state: "sent", n: 250 }]));
  await drainer.stop();
  const seen: number[] = [];
  for await (const { payload, headers, tags } of bus.replay<{ n: number }>("orders")) {
    assert.deepEqual([headers, tags], [{ "x-n": String(payload.n) }, ["#o"]]);
    seen.push(payload.n);
  }
  for (let rest = 0; rest < 5; rest += 1) {
    const lane = seen.filter((n) => n % 5 === rest);
    assert.deepEqual(lane, [...lane].sort((one, other) => one - other), "each key in order");
  }
  assert.deepEqual([...seen].sort((one, other) => one - other), Array.from({ length: 250 }, (_, at) => 2 * at));
});

test("a crash between publishing and marking stores nothing twice, and a hopeless row is given up", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  let nowMs = 1_000;
  const outbox = new SqliteOutbox(new DatabaseSync(":memory:"), () => nowMs);
  const id = outbox.add({ topic: "t", payload: 1 });
  outbox.add({ topic: "not a topic", payload: 2 });
  // A drainer that publishes and dies.
  const [claimed] = outbox.claimBatch(1, 5_000);
  assert.equal(claimed?.id, id);
  await bus.publish("t", claimed?.payload, { id });
  assert.deepEqual(outbox.claimBatch(10, 5_000).map(({ topic }) => topic), ["not a topic"]);
  nowMs += 5_001;
  const drainer = runOutboxDrainer(outbox as OutboxStore, bus, { intervalMs: 60_000 });
  await drainer.drainNow();
  await drainer.stop();
  const stored = [];
  for await (const event of bus.replay("t")) stored.push(event.id);
  assert.deepEqual(stored, [id]);
  nowMs += 1_000_000;
  outbox.requeueExpired();
  assert.deepEqual(outbox.claimBatch(10, 5_000), [], "one is sent, one has failed");
});

test("a server that is away leaves rows due, and they go out when it is back", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  const outbox = new SqliteOutbox(new DatabaseSync(":memory:"));
  await server.kill();
  for (let n = 0; n < 20; n += 1) outbox.add({ topic: "t", payload: n });
  const drainer = runOutboxDrainer(outbox, bus, { intervalMs: 10, leaseMs: 300, retryBaseMs: 10, retryCapMs: 100 });
  await new Promise((resolve) => setTimeout(resolve, 800));
  await server.run();
  const payloads = async (): Promise<unknown[]> => {
    const found = [];
    for await (const { payload } of bus.replay("t")) found.push(payload);
    return found;
  };
  await until("all are there", async () => (await payloads().catch(() => [])).length === 20);
  await drainer.stop();
  assert.equal(new Set(await payloads()).size, 20);
});

test("marks in a table keep handlers from running again", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  for (let n = 0; n < 3; n += 1) await bus.publish("t", n);
  const dedupe = new SqliteDedupe(new DatabaseSync(":memory:"));
  const runs: unknown[] = [];
  for (let round = 0; round < 2; round += 1) {
    const subscription = await subscribeExactlyOnce(bus, dedupe, "t", "g", ({ payload }) => void runs.push(payload), { from: "earliest" });
    await until("all are settled", async () => (await bus.getCursor("t", "g"))?.lastSeq === 3);
    await subscription.unsubscribe();
    await bus.seek("t", "g", { from: "earliest" });
  }
  assert.deepEqual(runs, [0, 1, 2]);
});

test("the global WebSocket is used where there is one", async (context) => {
  const server = await Server.start(context);
  assert.equal(typeof (globalThis as { WebSocket?: unknown }).WebSocket, "function");
  const bus = await client(context, server.url);
  const stored = await Promise.all(Array.from({ length: 2_000 }, (_, n) => bus.publish("t", n)));
  assert.equal(stored.length, 2_000);
  let handled = 0;
  await bus.subscribe("t", "g", () => void (handled += 1), { from: "earliest" });
  await until("all came", () => handled === 2_000);
  await server.kill();
  await server.run();
  assert.equal((await bus.publish("t", "after")).seq, 2_001);
});
