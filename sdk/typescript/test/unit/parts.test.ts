import assert from "node:assert/strict";
import { test } from "node:test";
import { Deque } from "../../src/deque.js";
import { errorFor, PrombusError, RateLimitedError, UnknownTopicError } from "../../src/errors.js";
import { MemoryDedupe } from "../../src/exactly_once.js";
import { IdGenerator } from "../../src/ids.js";
import { askToken, refreshDelayMs } from "../../src/link/token.js";
import { settingsOf } from "../../src/options.js";
import { SettledMemory } from "../../src/subscription/settled.js";
import { backoffMs } from "../../src/timers.js";

test("a deque gives back what an array would", () => {
  const deque = new Deque<number>();
  const model: number[] = [];
  let next = 0;
  for (let round = 0; round < 5_000; round += 1) {
    const choice = (round * 7_919) % 10;
    if (choice < 5) for (let count = 0; count < 3; count += 1) deque.push(next), model.push(next++);
    else if (choice < 9) for (let count = 0; count < 3; count += 1) assert.equal(deque.shift(), model.shift());
    else deque.prepend([-1, -2]), model.unshift(-1, -2);
    assert.equal(deque.length, model.length);
    assert.equal(deque.peek(), model[0]);
  }
  deque.retain((item) => item % 2 === 0);
  assert.deepEqual(deque.drain(), model.filter((item) => item % 2 === 0));
  assert.equal(deque.shift(), undefined);
});

test("errors are classes by code, and unknown codes keep theirs", () => {
  const limited = errorFor("rate_limited", "slow down", { retryAfterMs: 5 });
  assert.ok(limited instanceof RateLimitedError && limited instanceof PrombusError);
  assert.deepEqual([limited.name, limited.retryable, limited.retryAfterMs], ["RateLimitedError", true, 5]);
  assert.ok(errorFor("unknown_topic", "x") instanceof UnknownTopicError);
  for (const code of ["made_up_later", "constructor", "__proto__"]) {
    const error = errorFor(code, "x");
    assert.deepEqual([error.code, error.retryable], [code, false]);
  }
});

test("ids are made like those of the Rust client and differ", () => {
  const ids = new IdGenerator(new Uint8Array(12).fill(7));
  assert.equal(ids.generate(1_750_000_000_000), "1977420dc00-070707070707070707070707-1");
  assert.equal(ids.generate(1_750_000_000_001), "1977420dc01-070707070707070707070707-2");
});

test("pauses grow to the cap and are spread", () => {
  assert.equal(backoffMs(50, 10_000, 1, 1), 50);
  assert.equal(backoffMs(50, 10_000, 1, 0), 25);
  assert.equal(backoffMs(50, 10_000, 3, 1), 200);
  assert.equal(backoffMs(50, 10_000, 4_000_000, 1), 10_000);
});

test("tokens say when they expire, and are replaced before", async () => {
  const claims = Buffer.from(JSON.stringify({ exp: 100 })).toString("base64url");
  assert.deepEqual(await askToken(`h.${claims}.s`), { token: `h.${claims}.s`, expiresAt: 100_000 });
  assert.deepEqual(await askToken(() => "opaque"), { token: "opaque" });
  assert.deepEqual(await askToken(() => ({ token: "t", expiresAt: 5 })), { token: "t", expiresAt: 5 });
  assert.equal(await askToken(undefined), undefined);
  assert.equal(refreshDelayMs({ token: "t", expiresAt: 100_000 }, 0), 90_000);
  assert.equal(refreshDelayMs({ token: "t", expiresAt: 10_000 }, 0), 8_000);
  assert.equal(refreshDelayMs({ token: "t", expiresAt: 0 }, 10_000), 500);
  assert.equal(refreshDelayMs({ token: "t" }, 0), undefined);
});

test("urls of every kind lead to both transports", () => {
  for (const [url, socket, http] of [
    ["ws://h:1", "ws://h:1/ws", "http://h:1"],
    ["https://h/bus/", "wss://h/bus/ws", "https://h/bus"],
    ["wss://h/bus/ws", "wss://h/bus/ws", "https://h/bus"],
    ["http://[::1]:8090/ws", "ws://[::1]:8090/ws", "http://[::1]:8090"],
  ] as const) {
    const { socketUrl, httpUrl } = settingsOf({ url });
    assert.deepEqual([socketUrl, httpUrl], [socket, http]);
  }
});

test("what was acknowledged lately is recognised after a break, and only then", () => {
  const memory = new SettledMemory();
  memory.confirmed(["old"], 0);
  memory.confirmed(["a", "b"], 20_000);
  assert.equal(memory.isRepeated("a", 20_000), false);
  memory.onDisconnect(["unconfirmed"], 20_500);
  for (const key of ["a", "b", "unconfirmed"]) assert.equal(memory.isRepeated(key, 21_000), true, key);
  assert.equal(memory.isRepeated("old", 21_000), false);
  memory.confirmed(["a"], 22_000);
  assert.equal(memory.isRepeated("a", 22_000), false);
  assert.equal(memory.isRepeated("b", 200_000), false, "after some time it may be on purpose");
});

test("marks end with their time, and the oldest make room", () => {
  let nowMs = 0;
  const marks = new MemoryDedupe(2, () => nowMs);
  marks.mark("a", 100);
  assert.equal(marks.seen("a"), true);
  nowMs = 100;
  assert.equal(marks.seen("a"), false);
  for (const key of ["b", "c", "d"]) marks.mark(key, 100);
  assert.deepEqual(["b", "c", "d"].map((key) => marks.seen(key)), [false, true, true]);
});
