import assert from "node:assert/strict";
import { test } from "node:test";
import { type Delivery, defineTopic, InvalidPayloadError } from "@prombus/client";
import * as v from "valibot";
import { z } from "zod";
import { client } from "../support/clients.js";
import { Server } from "../support/server.js";
import { until } from "../support/waiting.js";

interface Heartbeat {
  pid: number;
  host: string;
}

test("a typed topic is checked by the compiler alone", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  const heartbeat = defineTopic<Heartbeat>("heartbeat.received");
  await bus.publish(heartbeat, { pid: 1, host: "a" });
  // @ts-expect-error: a field is missing.
  await bus.publish(heartbeat, { pid: 1 });
  const hosts: string[] = [];
  await bus.subscribe(heartbeat, "g", ({ payload }) => void hosts.push(payload.host), { from: "earliest" });
  await until("both came", () => hosts.length === 2);
});

const byZod = defineTopic("checked", z.object({ pid: z.number(), at: z.string().transform((text) => new Date(text)) }));
const byValibot = defineTopic("checked", v.object({ pid: v.number(), at: v.pipe(v.string(), v.transform((text) => new Date(text))) }));

for (const [vendor, topic] of [["zod", byZod], ["valibot", byValibot]] as const) {
  test(`what is published is checked and what is received is parsed, with ${vendor}`, async (context) => {
    const server = await Server.start(context);
    const bus = await client(context, server.url);
    await bus.publish(topic, { pid: 1, at: "2026-01-01T00:00:00.000Z" });
    const bad = { pid: "one", at: "2026-01-01T00:00:00.000Z" };
    await assert.rejects(bus.publish(topic, bad as never), (error) => error instanceof InvalidPayloadError && error.code === "schema_invalid" && /pid/.test(error.message));
    await bus.publish("checked", bad);
    const years: number[] = [];
    await bus.subscribe(topic, "g", ({ payload }) => void years.push(payload.at.getUTCFullYear()), { from: "earliest", maxAttempts: 1 });
    const deadLetters: { err: string }[] = [];
    await bus.subscribe<{ err: string }>("dlq.checked", "deadLetters", ({ payload }) => void deadLetters.push(payload), { from: "earliest" });
    await until("the bad one is a dead letter", () => deadLetters.length === 1);
    assert.deepEqual(years, [2026]);
    assert.match(deadLetters[0]?.err ?? "", /invalid payload: pid/);

    const invalid: Delivery<unknown>[] = [];
    const onInvalid = (delivery: Delivery<unknown>): void => {
      invalid.push(delivery);
      delivery.ack();
    };
    const iterator = bus.consume(topic, "loop", { from: "earliest", onInvalid });
    const { value: first } = await iterator.next();
    first?.ack();
    assert.equal(first?.payload.at.getUTCFullYear(), 2026);
    await bus.publish(topic, { pid: 2, at: "2027-01-01T00:00:00.000Z" });
    const { value: second } = await iterator.next();
    second?.ack();
    assert.equal(second?.payload.pid, 2);
    assert.equal(invalid.length, 1);
    await iterator.return();
  });
}
