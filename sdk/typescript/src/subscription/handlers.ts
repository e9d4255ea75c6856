/** Handlers at work: so many at a time, acknowledged when they return and NACKed when they throw. */

import { messageOf } from "../errors.js";
import type { Settings } from "../options.js";
import type { Delivery } from "./delivery.js";
import type { Membership } from "./membership.js";
import type { SubscriptionSettings } from "./options.js";
import type { PayloadParser } from "./parsing.js";

/** What a subscriber does with each delivery. */
export type Handler<T> = (delivery: Delivery<T>) => unknown;

export class HandlerRunner<T> {
  #running = 0;
  #onIdle: (() => void)[] = [];
  readonly #membership: Membership;
  readonly #handler: Handler<T>;
  readonly #parser: PayloadParser<T>;
  readonly #settings: SubscriptionSettings;
  readonly #client: Settings;

  constructor(
    membership: Membership,
    handler: Handler<T>,
    parser: PayloadParser<T>,
    settings: SubscriptionSettings,
    client: Settings,
  ) {
    this.#membership = membership;
    this.#handler = handler;
    this.#parser = parser;
    this.#settings = settings;
    this.#client = client;
  }

  /** Starts handlers for what waits, as many as may run. */
  pump(): void {
    while (this.#running < this.#settings.concurrency) {
      const delivery = this.#membership.take();
      if (!delivery) return;
      this.#run(delivery as Delivery<T>);
    }
  }

  /** Resolves when no handler runs. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#running === 0) resolve();
      else this.#onIdle.push(resolve);
    });
  }

  #run(delivery: Delivery<T>): void {
    this.#running += 1;
    let result: unknown;
    try {
      result = this.#parser.isIdentity ? this.#call(delivery) : this.#parseAndCall(delivery);
    } catch (error) {
      return this.#failed(delivery, error);
    }
    // A handler that returned is not waited for, so that quick ones cost little.
    if (typeof (result as PromiseLike<unknown> | undefined)?.then !== "function") return this.#succeeded(delivery);
    (result as PromiseLike<unknown>).then(
      (value) => {
        if (value !== INVALID) this.#succeeded(delivery);
        else this.#finished(delivery);
        this.pump();
      },
      (error: unknown) => {
        this.#failed(delivery, error);
        this.pump();
      },
    );
  }

  #call(delivery: Delivery<T>): unknown {
    const extract = this.#client.trace.extract;
    const { headers } = delivery.event;
    if (!extract || !headers) return this.#handler(delivery);
    return extract.call(this.#client.trace, headers, () => this.#handler(delivery));
  }

  async #parseAndCall(delivery: Delivery<T>): Promise<unknown> {
    const parsed = await this.#parser.parse(delivery as Delivery<unknown>);
    return parsed ? this.#call(parsed) : INVALID;
  }

  #succeeded(delivery: Delivery<T>): void {
    if (!this.#settings.manualAck) delivery.ack();
    this.#finished(delivery);
  }

  #failed(delivery: Delivery<T>, error: unknown): void {
    const { topic, id } = delivery.event;
    this.#client.logger.warn?.("prombus: a handler failed", { topic, id, attempt: delivery.attempt, error });
    delivery.nack(messageOf(error));
    this.#finished(delivery);
  }

  #finished(delivery: Delivery<T>): void {
    this.#running -= 1;
    this.#membership.finished(delivery as Delivery);
    if (this.#running === 0) for (const idle of this.#onIdle.splice(0)) idle();
  }
}

/** What comes of a delivery whose payload was not valid. */
const INVALID = Symbol("invalid");
