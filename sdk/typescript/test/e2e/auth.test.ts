import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { BadTokenError, connect, ForbiddenError, TokenExpiredError } from "@prombus/client";
import { client } from "../support/clients.js";
import { Server } from "../support/server.js";
import { pause, until } from "../support/waiting.js";

const SECRET = "a secret of the tests, long enough";
const CONFIG = `[auth]\njwt_secret = "${SECRET}"\n`;

function jwt(ttlSeconds: number, scope = "publish:** subscribe:** admin:**"): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
  const body = `${encode({ alg: "HS256", typ: "JWT" })}.${encode({ exp: Math.floor(Date.now() / 1000) + ttlSeconds, scope })}`;
  return `${body}.${createHmac("sha256", SECRET).update(body).digest("base64url")}`;
}

test("a token is refreshed on the same connection before it expires, and leases stay", async (context) => {
  const server = await Server.start(context, { config: CONFIG });
  let asked = 0;
  const bus = await client(context, server.url, { token: async () => (asked += 1, jwt(4)) });
  let disconnects = 0;
  bus.on("disconnected", () => (disconnects += 1));
  await bus.publish("t", 1);
  const attempts: number[] = [];
  await bus.subscribe("t", "g", async ({ attempt }) => {
    attempts.push(attempt);
    await pause(9_000);
  }, { from: "earliest" });
  await until("the event is settled after two tokens have expired", async () => (await bus.getCursor("t", "g"))?.lastSeq === 1);
  assert.deepEqual(attempts, [1]);
  assert.equal(disconnects, 0);
  assert.ok(asked >= 3, `${asked} tokens`);
});

test("a fixed token that expires ends the client, and a provider's next one is used", async (context) => {
  const server = await Server.start(context, { config: CONFIG });
  const fixed = await client(context, server.url, { token: jwt(1) });
  const closed = new Promise<unknown>((resolve) => fixed.on("closed", ({ error }) => resolve(error)));
  assert.ok((await closed) instanceof TokenExpiredError);
  await assert.rejects(fixed.publish("t", 1), TokenExpiredError);

  const tokens = ["nonsense", jwt(60)];
  const bus = await client(context, server.url, { token: () => tokens.shift() ?? jwt(60), waitForServer: true });
  await bus.publish("t", 1);
  await assert.rejects(connect({ url: server.url, token: "nonsense" }), BadTokenError);
  await assert.rejects(connect({ url: server.url, token: () => Promise.reject(new Error("no luck")) }), { code: "no_token" });
});

test("what the policy does not allow is forbidden, over both transports", async (context) => {
  const server = await Server.start(context, { config: CONFIG });
  const bus = await client(context, server.url, { token: () => jwt(60, "publish:mine.*") });
  await bus.publish("mine.a", 1);
  await assert.rejects(bus.publish("yours.a", 1), ForbiddenError);
  await assert.rejects(bus.subscribe("mine.a", "g", () => undefined), ForbiddenError);
  await assert.rejects(bus.replay("mine.a").next(), ForbiddenError);
});

test("a static token works for both transports", async (context) => {
  const server = await Server.start(context, { token: "open sesame" });
  const bus = await client(context, server.url, { token: "open sesame" });
  await bus.publish("t", 1);
  assert.equal((await bus.replay("t").next()).value?.payload, 1);
});
