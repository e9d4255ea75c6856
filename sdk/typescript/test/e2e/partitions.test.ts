import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client, SubscribeOptions, Subscription } from "@prombus/client";
import { client } from "../support/clients.js";
import { Server } from "../support/server.js";
import { pause, signal, until } from "../support/waiting.js";

const CONFIG = '[[topics]]\nname = "t"\npartitions = 8\n';
const ALL = [0, 1, 2, 3, 4, 5, 6, 7];

async function fill(bus: Client, first: number, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => bus.publish("t", first + n, { key: `k${n % 40}` })));
}

/** A member that writes down what happens to it. */
class Member {
  readonly held = new Set<number>();
  readonly calls: string[] = [];
  readonly seen: { partition: number; seq: number }[] = [];
  subscription: Subscription | undefined;

  constructor(private readonly name: string, private readonly holders: Map<number, string>) {}

  async join(bus: Client, options: SubscribeOptions<number> = {}, work: () => Promise<void> = async () => undefined): Promise<void> {
    this.subscription = await bus.subscribe<number>("t", "g", async ({ event: { partition = -1, seq } }) => {
      assert.equal(this.holders.get(partition), this.name, "its holder handles it");
      await work();
      assert.equal(this.holders.get(partition), this.name, "to the end");
      this.seen.push({ partition, seq });
    }, {
      from: "earliest",
      partitioned: true,
      concurrency: 8,
      onAssigned: async (partitions, topic) => {
        await pause(5);
        assert.equal(topic, "t");
        this.calls.push(`+${partitions.join()}`);
        for (const each of partitions) {
          assert.equal(this.holders.get(each), undefined, `${each} is free`);
          this.holders.set(each, this.name);
          this.held.add(each);
        }
      },
      onRevoked: async (partitions) => {
        await pause(5);
        this.calls.push(`-${partitions.join()}`);
        for (const each of partitions) {
          assert.equal(this.holders.get(each), this.name);
          this.holders.delete(each);
          this.held.delete(each);
        }
      },
      ...options,
    });
  }
}

function assertOrder(members: Member[], count: number): void {
  const all = members.flatMap(({ seen }) => seen);
  assert.deepEqual(all.map(({ seq }) => seq).sort((a, b) => a - b), Array.from({ length: count }, (_, n) => n + 1), "each once");
  for (const { seen } of members) {
    const last = new Map<number, number>();
    for (const { partition, seq } of seen) {
      assert.ok(seq > (last.get(partition) ?? 0), `${seq} behind ${last.get(partition)} in partition ${partition}`);
      last.set(partition, seq);
    }
  }
}

test("partitions come and go with their hooks around the events, and a member that leaves hands its own over", async (context) => {
  const server = await Server.start(context, { config: CONFIG });
  const bus = await client(context, server.url);
  const other = await client(context, server.url);
  await fill(bus, 0, 200);
  const holders = new Map<number, string>();
  const one = new Member("one", holders);
  const two = new Member("two", holders);
  const work = (): Promise<void> => pause(3);
  await one.join(bus, {}, work);
  await until("the first has all", () => one.held.size === 8);
  assert.deepEqual(one.calls, ["+0,1,2,3,4,5,6,7"]);
  await two.join(other, {}, work);
  await until("the second has some", () => two.held.size > 0);
  assert.deepEqual([...one.held, ...two.held].sort(), ALL);
  await fill(bus, 200, 200);
  await until("all are handled", () => one.seen.length + two.seen.length === 400);
  assertOrder([one, two], 400);
  await two.subscription?.unsubscribe();
  assert.equal(two.held.size, 0, "onRevoked comes before it leaves");
  await until("the first has all again", () => one.held.size === 8);
  await fill(bus, 400, 40);
  await until("the rest is handled", () => one.seen.length + two.seen.length === 440);
  assertOrder([one, two], 440);
});

test("a partition is handed over after its handler and onRevoked are done, and not before", async (context) => {
  const server = await Server.start(context, { config: CONFIG });
  const bus = await client(context, server.url);
  const other = await client(context, server.url);
  await fill(bus, 0, 80);
  const holders = new Map<number, string>();
  const one = new Member("one", holders);
  const two = new Member("two", holders);
  const working = signal();
  const flushing = signal();
  let revokes = 0;
  await one.join(bus, { onRevoked: async (partitions) => {
    revokes += 1;
    await flushing.promise;
    for (const each of partitions) holders.delete(each);
  } }, () => working.promise);
  await until("it has all", () => one.held.size === 8);
  await two.join(other);
  await pause(300);
  assert.equal(revokes, 0, "handlers are running");
  assert.equal(two.held.size, 0);
  working.resolve();
  await until("the hook runs", () => revokes === 1);
  await pause(300);
  assert.equal(two.held.size, 0, "the hook is running");
  flushing.resolve();
  await until("the second has some", () => two.held.size > 0);
  await until("all are handled", () => one.seen.length + two.seen.length === 80);
  assertOrder([one, two], 80);
});

test("after a break everything is revoked and assigned again, and no handler runs twice", async (context) => {
  const server = await Server.start(context, { config: CONFIG });
  const bus = await client(context, server.url);
  await fill(bus, 0, 120);
  const holders = new Map<number, string>();
  const one = new Member("one", holders);
  await one.join(bus, {}, () => pause(20));
  await until("it is at work", () => one.seen.length > 20);
  await server.kill();
  await until("all is revoked", () => one.held.size === 0);
  await server.run();
  await until("all are handled", () => one.seen.length >= 120);
  assert.deepEqual(one.calls, ["+0,1,2,3,4,5,6,7", "-0,1,2,3,4,5,6,7", "+0,1,2,3,4,5,6,7"]);
  assertOrder([one], 120);
});

test("a hook that throws ends the subscription, and the others get its partitions", async (context) => {
  const server = await Server.start(context, { config: CONFIG });
  const bus = await client(context, server.url, { logger: {} });
  const other = await client(context, server.url);
  await fill(bus, 0, 10);
  const holders = new Map<number, string>();
  const failing = await bus.subscribe("t", "g", () => assert.fail("nothing is handled"), {
    from: "earliest",
    partitioned: true,
    onAssigned: () => {
      throw new Error("no state");
    },
  });
  const error = await failing.done;
  assert.equal(error?.code, "hook_failed");
  assert.match(error?.message ?? "", /no state/);
  const two = new Member("two", holders);
  await two.join(other);
  await until("all are handled", () => two.seen.length === 10);
});

test("a loop gets the events of its partitions, and revocation waits for its next turn", async (context) => {
  const server = await Server.start(context, { config: CONFIG });
  const bus = await client(context, server.url);
  const other = await client(context, server.url);
  await fill(bus, 0, 80);
  const calls: string[] = [];
  const loop = bus.consume<number>("t", "g", {
    from: "earliest",
    partitioned: true,
    onAssigned: (partitions) => void calls.push(`+${partitions.length}`),
    onRevoked: (partitions) => void calls.push(`-${partitions.length}`),
  });
  const first = (await loop.next()).value;
  assert.deepEqual(calls, ["+8"]);
  const two = new Member("two", new Map());
  await two.join(other);
  await pause(200);
  first?.ack();
  const second = (await loop.next()).value;
  await until("the rest was revoked", () => calls.length === 2);
  await until("the second has them", () => two.held.size > 0);
  assert.equal(calls[1], `-${two.held.size}`);
  second?.ack();
  await loop.return();
  await until("the second has all", () => two.held.size === 8);
  await until("it got the rest", () => two.seen.length >= 78);
});

test("a topic without partitions cannot be shared so", async (context) => {
  const server = await Server.start(context);
  const bus = await client(context, server.url);
  await bus.publish("plain", 1);
  await assert.rejects(bus.subscribe("plain", "g", () => undefined, { partitioned: true }), /partitions/);
});
