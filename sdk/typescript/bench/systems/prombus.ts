/** prombus through this package. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, connect } from "@prombus/client";
import { freePort } from "../../test/support/server.js";
import { prombusProgram, Running } from "../processes.js";
import { type System, withInFlight } from "../systems.js";

const MAX_IN_FLIGHT = 5_000;

export class Prombus implements System {
  private constructor(readonly name: string, private readonly server: Running, private readonly client: Client) {}

  /** `os` replies after the write, as the peers do; `fsync` after fsync. */
  static async start(durability: "os" | "fsync"): Promise<Prombus> {
    const port = await freePort();
    const server = await Running.start(prombusProgram(), port, (folder) => {
      const config = join(folder, "prombus.toml");
      writeFileSync(config, `[[topics]]\nname = "bench.*"\ndurability = "${durability}"\n`);
      return ["serve", "--listen", `127.0.0.1:${port}`, "--store", `file:${join(folder, "data")}`, "--config", config];
    });
    return new Prombus(`prombus ${durability}`, server, await connect({ url: `ws://127.0.0.1:${port}`, waitForServer: true }));
  }

  publish(topic: string, payloads: readonly object[], inFlight: number): Promise<void> {
    return withInFlight(payloads, inFlight, (payload) => this.client.publish(`bench.${topic}`, payload));
  }

  async consume(topic: string, count: number): Promise<number> {
    let seen = 0;
    let done: () => void = () => undefined;
    const all = new Promise<void>((resolve) => (done = resolve));
    const subscription = await this.client.subscribe<{ n: number }>(`bench.${topic}`, "bench", ({ payload }) => {
      if (typeof payload.n === "number" && ++seen === count) done();
    }, { from: "earliest", maxInFlight: MAX_IN_FLIGHT, batchSize: 1_000 });
    await all;
    await subscription.unsubscribe();
    return seen;
  }

  async stop(): Promise<void> {
    await this.client.close();
    await this.server.stop();
  }
}
