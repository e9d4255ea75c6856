import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimitedError } from "../../src/errors.js";
import { Outbox } from "../../src/publish/outbox.js";

const LIMITS = { maxInFlight: 3, maxInFlightBytes: 1_000, maxQueued: 10, maxQueuedBytes: 500 };

function filled(texts: string[], outcomes: string[] = [], isIdempotent = true): Outbox {
  const outbox = new Outbox(LIMITS);
  for (const text of texts) {
    outbox.push({
      text,
      isIdempotent,
      hasGeneratedId: isIdempotent,
      waitForRateLimit: true,
      resolve: ({ seq, duplicate }) => void outcomes.push(`${text} ${seq}${duplicate ? " duplicate" : ""}`),
      reject: (error) => void outcomes.push(`${text} ${(error as { code: string }).code}`),
    });
  }
  return outbox;
}

test("what is not acknowledged is sent again before what is new, under its own corr", () => {
  const outcomes: string[] = [];
  const outbox = filled(["{a", "{b", "{c", "{d"], outcomes);
  assert.equal(outbox.nextMessage(0), '[{a,"corr":"1"},{b,"corr":"2"},{c,"corr":"3"}]');
  assert.equal(outbox.nextMessage(0), undefined, "no room");
  assert.equal(outbox.stored("1", { id: "x", seq: 7 }), true);
  outbox.rewind();
  assert.equal(outbox.nextMessage(0), '[{b,"corr":"2"},{c,"corr":"3"},{d,"corr":"4"}]');
  assert.equal(outbox.stored("2", { id: "y", seq: 8, duplicate: true }), true);
  assert.deepEqual(outcomes, ["{a 7", "{b 8"], "a publish that was sent twice is no duplicate of another");
});

test("what has no id is not sent again", () => {
  const outcomes: string[] = [];
  const outbox = filled(["{a", "{b", "{c", "{d"], outcomes, false);
  outbox.nextMessage(0);
  outbox.rewind();
  assert.deepEqual(outcomes, ["{a unknown_outcome", "{b unknown_outcome", "{c unknown_outcome"]);
  assert.equal(outbox.nextMessage(0), '[{d,"corr":"4"}]', "it was never sent, so its outcome is known");
});

test("replies out of order are noticed", () => {
  const outbox = filled(["{a", "{b"]);
  assert.equal(outbox.stored("1", { id: "x", seq: 1 }), false, "not sent yet");
  outbox.nextMessage(0);
  assert.equal(outbox.stored("2", { id: "x", seq: 1 }), false);
  assert.equal(outbox.stored("1", { id: "x", seq: 1 }), true);
  assert.equal(outbox.stored("1", { id: "x", seq: 1 }), false);
});

test("a rate limit is waited out with everything in its order", () => {
  const outcomes: string[] = [];
  const outbox = filled(["{a", "{b", "{c"], outcomes);
  outbox.nextMessage(0);
  outbox.stored("1", { id: "x", seq: 1 });
  outbox.rejected("2", new RateLimitedError("rate_limited", "slow down", { retryAfterMs: 50 }), 1_000);
  assert.equal(outbox.resumesAtMs, 1_050);
  assert.equal(outbox.nextMessage(2_000), undefined, "the third is not acknowledged yet");
  outbox.rejected("3", new RateLimitedError("rate_limited", "slow down", { retryAfterMs: 60 }), 1_010);
  assert.equal(outbox.nextMessage(1_069), undefined);
  assert.equal(outbox.nextMessage(1_070), '[{b,"corr":"2"},{c,"corr":"3"}]');
  assert.deepEqual(outcomes, ["{a 1"]);
});

test("limits are kept, and what is withdrawn is not sent", () => {
  const outcomes: string[] = [];
  const outbox = filled(["x".repeat(300), "y".repeat(300), "z"], outcomes);
  assert.deepEqual(outcomes.map((text) => text.slice(-10)), ["queue_full"]);
  const withdraw = outbox.push({ text: "w", isIdempotent: true, hasGeneratedId: true, waitForRateLimit: true, resolve: () => undefined, reject: () => undefined });
  assert.equal(withdraw?.(), true);
  assert.equal(withdraw?.(), false);
  assert.ok(!outbox.nextMessage(0)?.includes("w"));
  assert.equal(outbox.size, 2);
});
