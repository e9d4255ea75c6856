/** The bus behind the interface that services of this family are written against: change one constructor to switch. */

import { Client } from "./client.js";
import { messageOf, PrombusError } from "./errors.js";
import { positionBehind, settle } from "./http/groups.js";
import type { ClientOptions } from "./options.js";
import type { CursorPosition, DeliveryContext, EventRecord, PublishOptions } from "./record.js";
import type { Delivery } from "./subscription/delivery.js";
import type { SubscribeOptions } from "./subscription/options.js";

/** What became of an acknowledgement. */
export interface Ack {
  id: string;
  ok: boolean;
  err?: string;
}

/** Options of {@link EventBus.subscribe}. */
export type BusSubscribeOptions = Omit<SubscribeOptions, "onInvalid">;

/** A bus as services see it. */
export interface EventBus {
  publish<T>(topic: string, payload: T, opts?: PublishOptions): Promise<EventRecord<T>>;
  /** Resolves to a function that unsubscribes. */
  subscribe(
    topic: string,
    group: string,
    handler: (event: EventRecord, ctx: DeliveryContext) => Promise<void>,
    opts?: BusSubscribeOptions,
  ): Promise<() => Promise<void>>;
  ack(topic: string, group: string, id: string): Promise<Ack>;
  nack(topic: string, group: string, id: string, reason?: string): Promise<Ack>;
  getCursor(topic: string, group: string): Promise<CursorPosition | null>;
  setCursor(topic: string, group: string, cursor: CursorPosition): Promise<void>;
}

/** An {@link EventBus} on a server. */
export class PrombusEventBus implements EventBus {
  readonly #client: Client;
  /** Deliveries of manual subscriptions that wait for `ack` or `nack`. */
  readonly #held = new Map<string, Delivery>();

  constructor(client: Client | ClientOptions) {
    this.#client = client instanceof Client ? client : new Client({ waitForServer: true, ...client });
  }

  async publish<T>(topic: string, payload: T, opts?: PublishOptions): Promise<EventRecord<T>> {
    return this.#client.publish<T>(topic, payload, opts);
  }

  async subscribe(
    topic: string,
    group: string,
    handler: (event: EventRecord, ctx: DeliveryContext) => Promise<void>,
    opts: BusSubscribeOptions = {},
  ): Promise<() => Promise<void>> {
    const handle = (delivery: Delivery): Promise<void> => {
      if (opts.manualAck) this.#hold(group, delivery);
      return handler(delivery.event, delivery.context);
    };
    const subscription = await this.#client.subscribe(topic, group, handle, opts);
    return () => subscription.unsubscribe();
  }

  async ack(topic: string, group: string, id: string): Promise<Ack> {
    const delivery = this.#release(topic, group, id);
    const sent = delivery ? delivery.ackConfirmed() : settle(this.#client.transport, "/ack", { topic, group, id });
    return outcome(id, sent);
  }

  async nack(topic: string, group: string, id: string, reason?: string): Promise<Ack> {
    const delivery = this.#release(topic, group, id);
    if (!delivery) return outcome(id, settle(this.#client.transport, "/nack", { topic, group, id, reason }));
    delivery.nack(reason);
    return { id, ok: true };
  }

  async getCursor(topic: string, group: string): Promise<CursorPosition | null> {
    return this.#client.getCursor(topic, group);
  }

  async setCursor(topic: string, group: string, cursor: CursorPosition): Promise<void> {
    await this.#client.seek(topic, group, positionBehind(cursor));
  }

  /** Closes the client. */
  close(): Promise<void> {
    return this.#client.close();
  }

  #hold(group: string, delivery: Delivery): void {
    const { topic, id } = delivery.event;
    this.#held.set(heldKey(topic, group, id), delivery);
    for (const [oldest] of this.#held) {
      if (this.#held.size <= MAX_HELD) break;
      this.#held.delete(oldest);
    }
  }

  #release(topic: string, group: string, id: string): Delivery | undefined {
    const key = heldKey(topic, group, id);
    const delivery = this.#held.get(key);
    this.#held.delete(key);
    return delivery;
  }
}

/** Beyond it the oldest are forgotten; they can still be settled over HTTP. */
const MAX_HELD = 20_000;

function heldKey(topic: string, group: string, id: string): string {
  return `${topic} ${group} ${id}`;
}

async function outcome(id: string, sent: Promise<unknown>): Promise<Ack> {
  try {
    await sent;
    return { id, ok: true };
  } catch (error) {
    return { id, ok: false, err: error instanceof PrombusError ? `${error.code}: ${error.message}` : messageOf(error) };
  }
}
