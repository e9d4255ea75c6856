/** NATS JetStream through nats.js: a stream in files, a durable pull consumer with explicit acknowledgements. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { AckPolicy, DeliverPolicy, jetstream, type JetStreamClient, jetstreamManager, type JetStreamManager, StorageType } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { freePort } from "../../test/support/server.js";
import { natsProgram, Running } from "../processes.js";
import { type System, withInFlight } from "../systems.js";

const MAX_IN_FLIGHT = 5_000;
const ACK_WAIT_NS = 120e9;

export class JetStream implements System {
  readonly name = "nats.js";

  private constructor(
    private readonly server: Running,
    private readonly connection: NatsConnection,
    private readonly client: JetStreamClient,
    private readonly manager: JetStreamManager,
  ) {}

  static async start(): Promise<JetStream> {
    const port = await freePort();
    const server = await Running.start(natsProgram(), port, (folder) => {
      const config = join(folder, "nats.conf");
      writeFileSync(config, `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${join(folder, "store")}" }\n`);
      return ["-c", config];
    });
    const connection = await connect({ servers: `127.0.0.1:${port}` });
    return new JetStream(server, connection, jetstream(connection, { timeout: 60_000 }), await jetstreamManager(connection));
  }

  async publish(topic: string, payloads: readonly object[], inFlight: number): Promise<void> {
    await this.manager.streams.add({ name: topic, subjects: [topic], storage: StorageType.File });
    await withInFlight(payloads, inFlight, (payload) => this.client.publish(topic, JSON.stringify(payload)));
  }

  async consume(topic: string, count: number): Promise<number> {
    await this.manager.consumers.add(topic, { durable_name: "bench", ack_policy: AckPolicy.Explicit, deliver_policy: DeliverPolicy.All, ack_wait: ACK_WAIT_NS, max_ack_pending: MAX_IN_FLIGHT });
    const consumer = await this.client.consumers.get(topic, "bench");
    const messages = await consumer.consume({ max_messages: MAX_IN_FLIGHT });
    let seen = 0;
    for await (const message of messages) {
      if (typeof message.json<{ n: number }>().n === "number") seen += 1;
      message.ack();
      if (seen === count) break;
    }
    await this.connection.flush();
    for (let pending = 1; pending > 0; ) pending = (await consumer.info()).num_ack_pending;
    return seen;
  }

  async stop(): Promise<void> {
    await this.connection.close();
    await this.server.stop();
  }
}
