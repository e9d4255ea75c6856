/** Publishes a heartbeat of this process every second: `node heartbeat_publisher.js ws://127.0.0.1:8090`. */

import { hostname } from "node:os";
import { connect, defineTopic } from "@prombus/client";

interface Heartbeat {
  pid: number;
  name: string;
  host: string;
  cpu_pct: number;
  mem_mb: number;
}

const heartbeat = defineTopic<Heartbeat>("heartbeat.received");
const stop = new AbortController();
process.once("SIGINT", () => stop.abort());
process.once("SIGTERM", () => stop.abort());

const bus = await connect({ url: process.argv[2] ?? "ws://127.0.0.1:8090", waitForServer: true, logger: console });
let last = process.cpuUsage();
for (let beats = 0; !stop.signal.aborted && beats < Number(process.argv[3] ?? Infinity); beats += 1) {
  const used = process.cpuUsage(last);
  last = process.cpuUsage();
  const payload = { pid: process.pid, name: "example", host: hostname(), cpu_pct: (used.user + used.system) / 10_000, mem_mb: process.memoryUsage.rss() / 1e6 };
  const { seq } = await bus.publish(heartbeat, payload, { key: `${payload.host}:${payload.pid}` });
  console.log(`beat ${seq}`);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
}
await bus.close();
