/** Bytes, requests and times of a first visit: prints figures, asserts none. */

import { openPage, Server, startBrowser } from "./support.js";

const ROUNDS = Number(process.env["ROUNDS"] ?? 5);

const cleanups: (() => Promise<void>)[] = [];
const context = { after: (cleanup: () => Promise<void>) => void cleanups.push(cleanup) };
const server = await Server.start(context);
for (let n = 0; n < 500; n += 1) await server.api(`/publish/t${n}`, n);
const browser = await startBrowser(context);

const visits: { bytes: number; requests: number; paintMs: number; rowMs: number; againBytes: number }[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const page = await openPage(browser, "about:blank");
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  let [bytes, requests] = [0, 0];
  session.on("Network.requestWillBeSent", () => (requests += 1));
  session.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  const started = performance.now();
  await page.goto(`${server.url}/#/topics`);
  await page.waitForSelector(".vbody .vrow");
  const rowMs = performance.now() - started;
  const paintMs = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
  const first = { bytes, requests };
  bytes = 0;
  await page.reload();
  await page.waitForSelector(".vbody .vrow");
  visits.push({ ...first, paintMs, rowMs, againBytes: bytes });
  await page.context().close();
}
const median = (values: number[]): number => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
const column = (name: keyof (typeof visits)[0]): number => Math.round(median(visits.map((visit) => visit[name])));
console.log(`first visit of the topics view, 500 topics, median of ${ROUNDS}`);
console.log(`bytes over the wire   ${column("bytes")}`);
console.log(`requests              ${column("requests")}`);
console.log(`first paint           ${column("paintMs")} ms`);
console.log(`first row             ${column("rowMs")} ms`);
console.log(`bytes of a reload     ${column("againBytes")}`);
for (const cleanup of cleanups.reverse()) await cleanup();
