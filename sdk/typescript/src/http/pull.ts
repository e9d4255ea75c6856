/** Consuming without a socket: events under leases that last between requests. */

import { stepEvents, stepRecords } from "../publish/encode.js";
import { contextOf, type DeliveryContext, type EventRecord, type OutgoingEvent, type StartOptions, type StoredRecord } from "../record.js";
import type { HttpTransport } from "../transport/http.js";
import { settle } from "./groups.js";

export interface PullOptions extends StartOptions {
  /** The most events (the server's default where none is given). */
  max?: number;
  /** How long to wait for the first. */
  waitMs?: number;
  ackTimeoutMs?: number;
  signal?: AbortSignal;
}

/** A pulled event; the lease is extended only by {@link PulledDelivery.extend}. */
export class PulledDelivery<T = unknown> {
  readonly #http: HttpTransport;
  readonly #group: string;
  readonly #ctx: { attempt: number; maxAttempts?: number; ack_deadline_ms: number };

  /** @internal */
  constructor(
    http: HttpTransport,
    group: string,
    readonly event: EventRecord<T>,
    ctx: { attempt: number; maxAttempts?: number; ack_deadline_ms: number },
  ) {
    this.#http = http;
    this.#group = group;
    this.#ctx = ctx;
  }

  get payload(): T {
    return this.event.payload;
  }

  get context(): DeliveryContext {
    return contextOf(this.event, this.#ctx.attempt, this.#ctx.maxAttempts ?? 5);
  }

  async ack(): Promise<void> {
    await settle(this.#http, "/ack", this.#body());
  }

  async nack(reason?: string, delayMs?: number): Promise<void> {
    await settle(this.#http, "/nack", { ...this.#body(), reason, delay_ms: delayMs });
  }

  async extend(extendMs: number = this.#ctx.ack_deadline_ms): Promise<void> {
    await settle(this.#http, "/modack", { ...this.#body(), extend_ms: extendMs });
  }

  /** Publishes these events and acknowledges this one in one atomic step. */
  async ackAndPublish(events: readonly OutgoingEvent[]): Promise<StoredRecord[]> {
    const publish = stepEvents(events, undefined);
    const { published } = await settle(this.#http, "/ack", { ...this.#body(), publish });
    return stepRecords(publish, published);
  }

  #body(): { topic: string; group: string; id: string } {
    return { topic: this.event.topic, group: this.#group, id: this.event.id };
  }
}

export async function pull<T>(http: HttpTransport, topic: string, group: string, options: PullOptions): Promise<PulledDelivery<T>[]> {
  const { waitMs, signal, ...rest } = options;
  const body = { topic, group, ...rest, wait_ms: waitMs };
  type Pulled = { events: { event: EventRecord<T>; ctx: { attempt: number; ack_deadline_ms: number } }[] };
  const { events } = await http.json<Pulled>({ method: "POST", path: "/pull", body, signal });
  return events.map(({ event, ctx }) => new PulledDelivery(http, group, event, ctx));
}
