import assert from "node:assert/strict";
import { test } from "node:test";
import { client } from "../support/clients.js";
import { Proxy } from "../support/proxy.js";
import { Server } from "../support/server.js";
import { pause, until } from "../support/waiting.js";

const EVENTS = 3_000;

for (const [what, disturb] of [
  ["cuts", (proxy: Proxy) => proxy.cut()],
  ["half-closes", (proxy: Proxy) => proxy.halfClose()],
] as const) {
  test(`a proxy that ${what} connections loses and doubles nothing`, async (context) => {
    const server = await Server.start(context);
    const proxy = await Proxy.start(context, server.port);
    proxy.delayMs = 1;
    const publisher = await client(context, proxy.url);
    const consumer = await client(context, proxy.url);
    const seen = new Map<number, number>();
    await consumer.subscribe<number>("t", "g", ({ payload }) => void seen.set(payload, (seen.get(payload) ?? 0) + 1), { from: "earliest", maxInFlight: 50 });
    let isDone = false;
    const disturbing = (async () => {
      for (let count = 0; count < 40 && !isDone; count += 1) {
        await pause(40 + (count % 5) * 20);
        disturb(proxy);
      }
    })();
    let next = 0;
    const publish = async (): Promise<void> => {
      while (next < EVENTS) await publisher.publish("t", next++);
    };
    await Promise.all(Array.from({ length: 100 }, publish));
    await until("all are handled", () => seen.size === EVENTS);
    isDone = true;
    await disturbing;
    await until("all are settled", async () => (await consumer.getCursor("t", "g"))?.lastSeq === EVENTS);
    assert.deepEqual([...seen.values()].filter((times) => times > 1), []);
    assert.ok(proxy.connections > 4, `${proxy.connections} connections`);
  });
}

test("a connection that falls silent is given up and made anew", async (context) => {
  const server = await Server.start(context);
  const proxy = await Proxy.start(context, server.port);
  const bus = await client(context, proxy.url, { keepAliveMs: 300 });
  const errors: string[] = [];
  bus.on("disconnected", ({ error }) => errors.push(error.message));
  await pause(1_000);
  assert.deepEqual(errors, [], "an idle connection is kept");
  proxy.isSilent = true;
  const sent = bus.publish("t", 1);
  await until("the silence is noticed", () => errors.length > 0);
  proxy.isSilent = false;
  assert.equal((await sent).seq, 1);
});
