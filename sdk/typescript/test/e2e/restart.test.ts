import assert from "node:assert/strict";
import { test } from "node:test";
import { UnknownOutcomeError } from "@prombus/client";
import { client } from "../support/clients.js";
import { Proxy } from "../support/proxy.js";
import { Server } from "../support/server.js";
import { pause, signal, until } from "../support/waiting.js";

/** `SDK_EVENTS=1000000` runs more. */
const EVENTS = Number(process.env["SDK_EVENTS"] ?? 100_000);
/** How many of them are published at a time. */
const WINDOW = 2_000;

test("a server that is killed twice in the middle loses nothing, and nothing acknowledged is handled again", async (context) => {
  const server = await Server.start(context);
  const publisher = await client(context, server.url);
  const consumer = await client(context, server.url);
  const handled = new Map<number, number>();
  /** Which were handled, and so acknowledged, while the client could not know better. */
  let repeated = 0;
  const subscription = await consumer.subscribe<number>("t", "g", ({ payload }) => {
    const times = (handled.get(payload) ?? 0) + 1;
    handled.set(payload, times);
    if (times > 1) repeated += 1;
  }, { from: "earliest", maxInFlight: 1_000 });

  let next = 0;
  const seqs = new Set<number>();
  const publishAll = async (): Promise<void> => {
    while (next < EVENTS) {
      const payload = next++;
      const { seq, duplicate } = await publisher.publish("t", payload);
      assert.equal(duplicate ?? false, false, "a resent publish is not somebody else's duplicate");
      seqs.add(seq);
    }
  };
  const publishing = Promise.all(Array.from({ length: WINDOW }, publishAll));
  for (const share of [0.3, 0.6]) {
    await until(`${share} are handled`, () => handled.size > EVENTS * share, 120_000);
    await server.kill();
    await server.run();
  }
  await publishing;
  await until("all are handled", () => handled.size === EVENTS, 120_000);
  await until("all are settled", async () => (await consumer.getCursor("t", "g"))?.lastSeq === EVENTS);
  assert.equal(seqs.size, EVENTS, "each has a position of its own");
  const topic = (await fetch(`http://127.0.0.1:${server.port}/topics/t`).then((response) => response.json())) as { tail_seq: number };
  assert.equal(topic.tail_seq, EVENTS, "none was stored twice");
  assert.equal(repeated, 0, "handlers that ran again");
  await subscription.unsubscribe();
});

test("a clean stop in the middle hands nothing out again", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  const states: string[] = [];
  bus.on("state", (state) => states.push(state));
  const seen: number[] = [];
  await bus.subscribe<number>("t", "g", async ({ payload }) => {
    await pause(1);
    seen.push(payload);
  }, { from: "earliest", concurrency: 20 });
  const sent = Array.from({ length: 1_000 }, (_, n) => bus.publish("t", n));
  await until("some came", () => seen.length > 100);
  await server.stop();
  await server.run();
  await Promise.all(sent);
  await until("all came", () => new Set(seen).size === 1_000);
  assert.equal(seen.length, 1_000);
  assert.deepEqual(states.slice(0, 2), ["reconnecting", "connected"]);
});

test("a handler that outlives its connection goes on under the new lease, and runs once", async (context) => {
  const server = await Server.start(context);
  const proxy = await Proxy.start(context, server.port);
  const bus = await client(context, proxy.url);
  await bus.publish("t", 1);
  const begun = signal();
  const release = signal();
  let runs = 0;
  await bus.subscribe("t", "g", async () => {
    runs += 1;
    begun.resolve();
    await release.promise;
  }, { from: "earliest" });
  await begun.promise;
  const again = new Promise((resolve) => bus.on("connected", resolve));
  proxy.cut();
  await again;
  await until("the server delivered it again", async () => {
    const metrics = await fetch(`http://127.0.0.1:${server.port}/metrics`).then((response) => response.text());
    return /events_delivered_total\{[^}]*topic="t"[^}]*\} 2/.test(metrics);
  });
  release.resolve();
  await until("it is settled", async () => (await bus.getCursor("t", "g"))?.lastSeq === 1);
  assert.equal(runs, 1);
});

test("an ephemeral subscription goes on where it was", async (context) => {
  const server = await Server.start(context);
  const proxy = await Proxy.start(context, server.port);
  const bus = await client(context, proxy.url);
  const direct = await client(context, server.url);
  const seen: unknown[] = [];
  await bus.subscribe("t.*", null, async ({ event }) => {
    await pause(1);
    seen.push(`${event.topic} ${String(event.payload)}`);
  }, { from: "latest" });
  for (let n = 0; n < 200; n += 1) {
    await direct.publish(`t.${n % 2}`, n);
    if (n % 50 === 25) proxy.cut();
  }
  await until("all came", () => new Set(seen).size === 200);
  assert.equal(seen.length, 200, "none twice");
});

test("a publish without an id whose reply is lost is reported as such, never as published", async (context) => {
  const server = await Server.start(context);
  const proxy = await Proxy.start(context, server.port);
  const bus = await client(context, proxy.url, { idempotent: false });
  await bus.publish("t", 0);
  proxy.isSilent = true;
  const lost = bus.publish("t", 1);
  const kept = bus.publish("t", 2, { id: "kept" });
  await pause(50);
  proxy.isSilent = false;
  proxy.cut();
  await assert.rejects(lost, UnknownOutcomeError);
  assert.equal((await kept).id, "kept");
});
