/**
 * What this client acknowledged lately. A server that is killed forgets the acknowledgements of the last moments, and
 * one whose connection broke may not have got them; both deliver the events again. They are acknowledged again and not
 * handed out.
 */

import { Deque } from "../deque.js";

/** For how long acknowledgements are remembered: many times the server's `ack_flush_ms`. */
const RECENT_MS = 10_000;
/** How many are remembered for that. */
const MAX_RECENT = 262_144;
/** For how long after a break a repeated delivery is recognised, and how many at most. */
const REPEATED_MS = 120_000;
const MAX_REPEATED = 524_288;

export class SettledMemory {
  readonly #recent = new Deque<{ atMs: number; keys: string[] }>();
  #recentCount = 0;
  readonly #repeated = new Set<string>();
  #repeatedUntilMs = 0;

  /** The server confirmed these. */
  confirmed(keys: string[], nowMs: number): void {
    if (this.#repeated.size > 0) for (const key of keys) this.#repeated.delete(key);
    this.#recent.push({ atMs: nowMs, keys });
    this.#recentCount += keys.length;
    for (let oldest = this.#recent.peek(); oldest && this.#recent.length > 1; oldest = this.#recent.peek()) {
      if (oldest.atMs > nowMs - RECENT_MS && this.#recentCount <= MAX_RECENT) break;
      this.#recent.shift();
      this.#recentCount -= oldest.keys.length;
    }
  }

  /** The connection broke; these were acknowledged and not confirmed. */
  onDisconnect(unconfirmed: Iterable<string>, nowMs: number): void {
    for (const { atMs, keys } of this.#recent.drain()) {
      if (atMs > nowMs - RECENT_MS) this.expect(keys, nowMs);
    }
    this.#recentCount = 0;
    this.expect(unconfirmed, nowMs);
  }

  /**
   * These may be delivered again although they were acknowledged: the acknowledgement belongs to an earlier connection,
   * or the server did not take it.
   */
  expect(keys: Iterable<string>, nowMs: number): void {
    if (nowMs > this.#repeatedUntilMs) this.#repeated.clear();
    this.#repeatedUntilMs = nowMs + REPEATED_MS;
    for (const key of keys) if (this.#repeated.size < MAX_REPEATED) this.#repeated.add(key);
  }

  /** Whether a delivery is of an event that was acknowledged before the connection broke. */
  isRepeated(key: string, nowMs: number): boolean {
    if (this.#repeated.size === 0) return false;
    if (nowMs > this.#repeatedUntilMs) {
      this.#repeated.clear();
      return false;
    }
    return this.#repeated.has(key);
  }
}
