/** Redis Streams through node-redis: an append-only file synced each second, a group with each entry acknowledged. */

import { createClient } from "redis";
import { freePort } from "../../test/support/server.js";
import { redisProgram, Running } from "../processes.js";
import { type System, withInFlight } from "../systems.js";

const READ_COUNT = 1_000;

const open = (port: number) => createClient({ url: `redis://127.0.0.1:${port}`, RESP: 2 });

type Connection = ReturnType<typeof open>;
type Entries = { messages: { id: string; message: { p: string } }[] }[] | null;

export class RedisStreams implements System {
  readonly name = "node-redis";

  private constructor(private readonly server: Running, private readonly client: Connection, private readonly reader: Connection) {}

  static async start(): Promise<RedisStreams> {
    const port = await freePort();
    const server = await Running.start(redisProgram(), port, (folder) => [
      ...["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec"],
      ...["--auto-aof-rewrite-percentage", "0"],
    ]);
    const client = open(port);
    await client.connect();
    // Reading blocks its connection.
    const reader = open(port);
    await reader.connect();
    return new RedisStreams(server, client, reader);
  }

  publish(topic: string, payloads: readonly object[], inFlight: number): Promise<void> {
    return withInFlight(payloads, inFlight, (payload) => this.client.xAdd(topic, "*", { p: JSON.stringify(payload) }));
  }

  async consume(topic: string, count: number): Promise<number> {
    await this.client.xGroupCreate(topic, "bench", "0");
    let seen = 0;
    let acknowledged: Promise<unknown> = Promise.resolve();
    const read = (): Promise<Entries> => this.reader.xReadGroup("bench", "one", { key: topic, id: ">" }, { COUNT: READ_COUNT, BLOCK: 1_000 }) as Promise<Entries>;
    let next = read();
    while (seen < count) {
      const entries = await next;
      const messages = entries?.[0]?.messages ?? [];
      // The next read is under way while these are looked at and acknowledged.
      if (seen + messages.length < count) next = read();
      for (const { message } of messages) if (typeof (JSON.parse(message.p) as { n: number }).n === "number") seen += 1;
      await acknowledged;
      acknowledged = Promise.all(messages.map(({ id }) => this.client.xAck(topic, "bench", id)));
    }
    await acknowledged;
    return seen;
  }

  async stop(): Promise<void> {
    this.client.destroy();
    this.reader.destroy();
    await this.server.stop();
  }
}
