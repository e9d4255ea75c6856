/**
 * Handlers whose effects are not repeated. This is at-least-once delivery with dedupe: a crash after the handler
 * succeeded and before its event is marked runs it again, unless the mark shares the handler's transaction.
 */

import type { Client } from "./client.js";
import { nameOf, type TopicName } from "./topic.js";
import type { Delivery } from "./subscription/delivery.js";
import type { SubscribeOptions } from "./subscription/options.js";
import type { Subscription } from "./subscription/subscription.js";

/** Remembers what was done. */
export interface DedupeStore {
  /** Whether this was marked and the mark is not older than its time. */
  seen(key: string): boolean | Promise<boolean>;
  /** Marks it as done for so long. */
  mark(key: string, ttlMs: number): void | Promise<void>;
}

export interface ExactlyOnceOptions<T> extends Omit<SubscribeOptions<T>, "manualAck"> {
  /** How long marks are kept (7 days). */
  ttlMs?: number;
}

const WEEK_MS = 7 * 24 * 3_600_000;

/** Subscribes a handler that is not called again for an event that it succeeded on, as long as the mark is kept. */
export function subscribeExactlyOnce<T>(
  client: Client,
  dedupe: DedupeStore,
  topic: TopicName<unknown, T>,
  group: string,
  handler: (delivery: Delivery<T>) => unknown,
  options: ExactlyOnceOptions<T> = {},
): Promise<Subscription> {
  const { ttlMs = WEEK_MS, ...rest } = options;
  const once = async (delivery: Delivery<T>): Promise<void> => {
    const key = `${nameOf(topic)}/${group}/${delivery.event.topic}/${delivery.event.id}`;
    if (await dedupe.seen(key)) return;
    await handler(delivery);
    // A handler that settled the event itself did not succeed.
    if (!delivery.isSettled) await dedupe.mark(key, ttlMs);
  };
  return client.subscribe(topic, group, once, rest);
}

/** Marks in memory, for tests and for effects that do not outlive the process. */
export class MemoryDedupe implements DedupeStore {
  readonly #expiry = new Map<string, number>();
  readonly #maxMarks: number;
  readonly #now: () => number;

  /** Beyond `maxMarks` the oldest are forgotten. */
  constructor(maxMarks = 100_000, now: () => number = Date.now) {
    this.#maxMarks = maxMarks;
    this.#now = now;
  }

  seen(key: string): boolean {
    const until = this.#expiry.get(key);
    if (until === undefined) return false;
    if (until > this.#now()) return true;
    this.#expiry.delete(key);
    return false;
  }

  mark(key: string, ttlMs: number): void {
    this.#expiry.delete(key);
    this.#expiry.set(key, this.#now() + ttlMs);
    for (const oldest of this.#expiry.keys()) {
      if (this.#expiry.size <= this.#maxMarks) break;
      this.#expiry.delete(oldest);
    }
  }
}
