import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type * as Sdk from "@prombus/client";
import { bundle, PACKAGE, serve, startBrowser } from "../support/browser.js";
import { client } from "../support/clients.js";
import { Server } from "../support/server.js";
import { until } from "../support/waiting.js";

declare global {
  interface Window {
    sdk: typeof Sdk;
    bus: Sdk.Client;
    seen: string[];
  }
}

const PAGE = '<!doctype html><script type="module">import * as sdk from "./client.js"; window.sdk = sdk;</script>';

test("the client works in a browser tab, through a restart of the server", async (context) => {
  const origin = await serve(context, { "/": PAGE, "/client.js": await bundle() });
  const server = await Server.start(context, { config: `cors_origins = ["${origin}"]\n` });
  const browser = await startBrowser(context);
  const page = await browser.newPage();
  await page.goto(origin);
  await page.waitForFunction(() => window.sdk !== undefined);
  const stored = await page.evaluate(async (url) => {
    window.bus = await window.sdk.connect({ url, reconnect: { baseMs: 20, capMs: 200 } });
    return Promise.all(Array.from({ length: 300 }, (_, n) => window.bus.publish("t", { n })));
  }, server.url);
  assert.deepEqual(stored.map(({ seq }) => seq), Array.from({ length: 300 }, (_, at) => at + 1));

  await page.evaluate(async () => {
    window.seen = [];
    await window.bus.subscribe<{ n: number }>("t", "g", async ({ payload, attempt }) => {
      if (payload.n === 7 && attempt === 1) throw new Error("once more");
      window.seen.push(`${payload.n}.${attempt}`);
    }, { from: "earliest" });
  });
  const count = (): Promise<number> => page.evaluate(() => window.seen.length);
  await until("all came", async () => (await count()) === 300);
  assert.ok(await page.evaluate(() => window.seen.includes("7.2")), "the one that failed came again");

  await server.kill();
  await server.run();
  const later = await page.evaluate(() => Promise.all([1, 2, 3].map((n) => window.bus.publish("t", { n: 1000 + n }))));
  assert.equal(later.length, 3);
  await until("they came too", async () => (await count()) === 303);
  const numbers = await page.evaluate(() => window.seen.map((text) => text.split(".")[0]));
  assert.equal(new Set(numbers).size, 303, "none was handled twice");
  const errors = await page.evaluate(async () => {
    const rejected = await window.bus.publish("not a topic", 1).catch((error: unknown) => error);
    await window.bus.close();
    return [(rejected as { code: string }).code, rejected instanceof window.sdk.BadTopicError, window.bus.state];
  });
  assert.deepEqual(errors, ["bad_topic", true, "closed"]);
});

test("the live tail of the examples shows events as they come", async (context) => {
  const page = readFileSync(join(PACKAGE, "examples/live_tail.html"), "utf8");
  const origin = await serve(context, { "/": page, "/client.js": await bundle() });
  const server = await Server.start(context, { config: `cors_origins = ["${origin}"]\n` });
  const browser = await startBrowser(context);
  const tab = await browser.newPage();
  await tab.goto(`${origin}/?url=${encodeURIComponent(server.url)}&topic=${encodeURIComponent("live.*")}`);
  await tab.waitForSelector("body[data-ready]");
  const bus = await client(context, server.url);
  await bus.publish("live.a", { hello: "tab" });
  await tab.waitForSelector("li");
  assert.equal(await tab.textContent("li"), 'live.a #1 {"hello":"tab"}');
  assert.equal(await tab.textContent("#state"), "connected");
});
