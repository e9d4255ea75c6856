/** A worker that retries: every third job fails at first. `node worker.js ws://127.0.0.1:8090` */

import { connect } from "@prombus/client";

const bus = await connect({ url: process.argv[2] ?? "ws://127.0.0.1:8090", waitForServer: true });
const jobs = Number(process.argv[3] ?? 6);
await Promise.all(Array.from({ length: jobs }, (_, job) => bus.publish("jobs", { job })));

let done = 0;
const finished = new Promise<void>((resolve) => {
  void bus.subscribe<{ job: number }>("jobs", "worker", async ({ payload, attempt }) => {
    if (payload.job % 3 === 0 && attempt === 1) throw new Error(`job ${payload.job} is not ready yet`);
    console.log(`job ${payload.job} done at attempt ${attempt}`);
    done += 1;
    if (done === jobs) resolve();
  }, { from: "earliest", concurrency: 2, maxAttempts: 5 });
});
await finished;
await bus.close();
