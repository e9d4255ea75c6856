/** The leases that a subscription holds, and their extension while the events wait or are handled. */

import { background } from "../timers.js";
import type { Delivery } from "./delivery.js";

/** However short leases are, they are not looked at more often than this. */
const MIN_CHECK_MS = 100;

export class Leases {
  readonly #held = new Map<string, Delivery>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #maxExtensionMs: number;
  readonly #extend: (due: Delivery[]) => void;

  /** `extend` gets those whose lease is to be extended now. */
  constructor(maxExtensionMs: number, extend: (due: Delivery[]) => void) {
    this.#maxExtensionMs = maxExtensionMs;
    this.#extend = extend;
  }

  get size(): number {
    return this.#held.size;
  }

  get(key: string): Delivery | undefined {
    return this.#held.get(key);
  }

  hold(key: string, delivery: Delivery): void {
    this.#held.set(key, delivery);
    if (this.#timer === undefined && this.#maxExtensionMs > 0) this.#schedule(delivery.leaseMs);
  }

  release(key: string): void {
    this.#held.delete(key);
  }

  /** Forgets those that were not taken yet. */
  releaseWaiting(): void {
    for (const [key, delivery] of this.#held) if (!delivery.isTaken) this.#held.delete(key);
  }

  end(): void {
    this.#held.clear();
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(leaseMs: number): void {
    this.#timer = background(() => this.#check(), Math.max(MIN_CHECK_MS, leaseMs / 3));
  }

  #check(): void {
    this.#timer = undefined;
    const nowMs = Date.now();
    const due: Delivery[] = [];
    let shortestMs = Infinity;
    for (const delivery of this.#held.values()) {
      shortestMs = Math.min(shortestMs, delivery.leaseMs);
      const isOverCeiling = nowMs - delivery.receivedAtMs >= this.#maxExtensionMs;
      if (delivery.isSettled || isOverCeiling || nowMs - delivery.leasedAtMs < delivery.leaseMs / 4) continue;
      delivery.leasedAtMs = nowMs;
      due.push(delivery);
    }
    if (due.length > 0) this.#extend(due);
    if (this.#held.size > 0) this.#schedule(shortestMs);
  }
}
