/** An event under a lease, and what a subscriber does with it. */

import { contextOf, type DeliveryContext, type EventRecord, type OutgoingEvent, type StoredRecord } from "../record.js";
import type { Membership } from "./membership.js";

/** An event that is leased to this subscription until it is settled. The first settlement counts. */
export class Delivery<T = unknown> {
  /** @internal */
  isSettled = false;
  /** @internal Whether it was handed to a handler or an iterator. */
  isTaken = false;

  readonly #membership: Membership;

  /** @internal */
  constructor(
    membership: Membership,
    readonly event: EventRecord<T>,
    /** The number of this delivery of the event, from 1. */
    public attempt: number,
    /** After this many failed deliveries the event is dead-lettered. */
    readonly maxAttempts: number,
    /** @internal The connection that holds the lease. */
    public epoch: number,
    /** @internal */
    public leaseMs: number,
    /** @internal When the lease was last given. */
    public leasedAtMs: number,
    /** @internal When the event first came. */
    readonly receivedAtMs: number,
  ) {
    this.#membership = membership;
  }

  get payload(): T {
    return this.event.payload;
  }

  get context(): DeliveryContext {
    return contextOf(this.event, this.attempt, this.maxAttempts);
  }

  /** Acknowledges. Acknowledgements share frames, and go again after a break until the server has them. */
  ack(): void {
    if (this.#settle()) this.#membership.ack(this);
  }

  /** Acknowledges and waits until the server has it; rejects with `lease_lost` where another member holds the event. */
  ackConfirmed(): Promise<void> {
    return this.#settle() ? this.#membership.ackConfirmed(this) : Promise.resolve();
  }

  /** Brings the event back after a backoff, or after `delayMs`. */
  nack(reason?: string, delayMs?: number): void {
    if (this.#settle()) this.#membership.nack(this, reason, delayMs);
  }

  /** Sets the deadline to now + `extendMs`. Leases are extended by themselves up to `maxExtensionMs`. */
  extend(extendMs?: number): void {
    if (!this.isSettled) this.#membership.extend([this], extendMs);
  }

  /**
   * Publishes these events and acknowledges this one in one atomic step: both happen or neither. Rejects with
   * `unknown_outcome` when the connection breaks before the reply; the event comes again exactly if nothing happened.
   */
  async ackAndPublish<P = unknown>(events: readonly OutgoingEvent<P>[]): Promise<StoredRecord<P>[]> {
    const stored = await this.#membership.ackAndPublish(this, events);
    return stored as StoredRecord<P>[];
  }

  #settle(): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    return true;
  }
}
