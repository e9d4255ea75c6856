/**
 * The package beside the JavaScript clients of NATS JetStream and Redis Streams: all servers run at once, rounds are
 * taken in turns, and the medians and their ratios are printed. `ROUNDS`, `EVENTS` and `SYSTEMS` change what is run.
 */

import { gzipSync } from "node:zlib";
import { bundle } from "../test/support/browser.js";
import type { System } from "./systems.js";
import { JetStream } from "./systems/jetstream.js";
import { Prombus } from "./systems/prombus.js";
import { RedisStreams } from "./systems/redis.js";

const ROUNDS = Number(process.env["ROUNDS"] ?? 5);
const EVENTS = Number(process.env["EVENTS"] ?? 50_000);
const IN_FLIGHT = 1_000;
const GOAL = 2;
/** About 256 bytes of JSON. */
const PAD = "x".repeat(230);

const START: Record<string, () => Promise<System>> = {
  "prombus-os": () => Prombus.start("os"),
  "prombus-fsync": () => Prombus.start("fsync"),
  nats: () => JetStream.start(),
  redis: () => RedisStreams.start(),
};

const systems: System[] = [];
const rates = new Map<string, number[]>();

try {
  const wanted = (process.env["SYSTEMS"] ?? Object.keys(START).join(",")).split(",");
  for (const name of wanted) systems.push(await (START[name] ?? (() => Promise.reject(new Error(`unknown system ${name}`))))());
  const payloads = Array.from({ length: EVENTS }, (_, n) => ({ n, pad: PAD }));
  // The first round warms everyone up and is not counted.
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const system of systems) await measure(system, round, payloads);
  }
  report();
} finally {
  for (const system of systems) await system.stop();
}
const whole = gzipSync(await bundle(), { level: 9 }).length;
const connectOnly = gzipSync(await bundle('export { connect } from "@prombus/client";'), { level: 9 }).length;
console.log(`\nbrowser bundle, minified and gzipped: ${whole} bytes with everything, ${connectOnly} with connect alone`);

async function measure(system: System, round: number, payloads: object[]): Promise<void> {
  const topic = `r${round}`;
  const publishing = await seconds(() => system.publish(topic, payloads, IN_FLIGHT));
  let seen = 0;
  const consuming = await seconds(async () => void (seen = await system.consume(topic, EVENTS)));
  if (seen !== EVENTS) throw new Error(`${system.name} consumed ${seen} of ${EVENTS}`);
  if (round === 0) return;
  add(system, "publish", EVENTS / publishing);
  add(system, "consume", EVENTS / consuming);
  console.error(`round ${round}: ${system.name} ${Math.round(EVENTS / publishing)}/s published, ${Math.round(EVENTS / consuming)}/s consumed`);
}

async function seconds(run: () => Promise<void>): Promise<number> {
  globalThis.gc?.();
  const begun = performance.now();
  await run();
  return (performance.now() - begun) / 1_000;
}

function add(system: System, what: string, rate: number): void {
  const key = `${system.name} ${what}`;
  rates.set(key, [...(rates.get(key) ?? []), rate]);
}

function median(system: string, what: string): number {
  const sorted = [...(rates.get(`${system} ${what}`) ?? [])].sort((one, other) => one - other);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

function report(): void {
  console.log(`${EVENTS} events of about 256 bytes, ${IN_FLIGHT} publishes in flight, each event acknowledged; medians of ${ROUNDS} rounds in turns; Node ${process.version}\n`);
  console.log(`| | publish/s | consume/s |\n|---|---|---|`);
  for (const { name } of systems) console.log(`| ${name} | ${Math.round(median(name, "publish"))} | ${Math.round(median(name, "consume"))} |`);
  console.log("");
  for (const ours of systems.filter(({ name }) => name.startsWith("prombus"))) {
    for (const peer of systems.filter(({ name }) => !name.startsWith("prombus"))) {
      const ratios = ["publish", "consume"].map((what) => `${what} ${(median(ours.name, what) / median(peer.name, what)).toFixed(2)}`);
      console.log(`${ours.name} beside ${peer.name}: ${ratios.join(", ")} (goal ${GOAL})`);
    }
  }
}
