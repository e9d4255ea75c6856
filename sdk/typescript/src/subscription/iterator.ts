/** Deliveries for a `for await` loop: each has to be settled by its taker, and leaving the loop unsubscribes. */

import type { PrombusError } from "../errors.js";
import { Deque } from "../deque.js";
import type { Delivery } from "./delivery.js";
import type { Membership, MembershipListener } from "./membership.js";
import type { PayloadParser } from "./parsing.js";
import type { Subscription } from "./subscription.js";

interface Opened {
  membership: Membership;
  subscription: Subscription;
  opened: Promise<void>;
}

interface Waiter {
  wake(): void;
}

/** Async iterable of deliveries. It subscribes with the first `next()`. */
export class DeliveryIterator<T> implements AsyncIterableIterator<Delivery<T>> {
  #state: Opened | undefined;
  #isOver = false;
  #error: unknown;
  /** What the loop has; asking for the next one says that it is done with it. */
  #inHand: Delivery | undefined;
  readonly #waiters = new Deque<Waiter>();
  #tellDone: (error: PrombusError | undefined) => void = () => undefined;

  readonly #open: (listener: MembershipListener) => Opened;
  readonly #parser: PayloadParser<T>;
  readonly #signal: AbortSignal | undefined;

  /** @internal */
  constructor(
    open: (listener: MembershipListener) => Opened,
    parser: PayloadParser<T>,
    signal: AbortSignal | undefined,
  ) {
    this.#open = open;
    this.#parser = parser;
    this.#signal = signal;
  }

  /** The subscription, to pause and resume; it is there from the first `next()` on. */
  get subscription(): Subscription | undefined {
    return this.#state?.subscription;
  }

  async next(): Promise<IteratorResult<Delivery<T>, undefined>> {
    this.#signal?.throwIfAborted();
    const { membership, opened } = this.#start();
    await opened;
    for (;;) {
      if (this.#inHand) membership.finished(this.#inHand);
      const delivery = membership.take();
      this.#inHand = delivery;
      if (delivery) {
        const parsed = await this.#parser.parse(delivery);
        if (parsed) return { done: false, value: parsed };
        continue;
      }
      this.#signal?.throwIfAborted();
      if (this.#error !== undefined) throw this.#error;
      if (this.#isOver) return { done: true, value: undefined };
      await new Promise<void>((wake) => this.#waiters.push({ wake }));
    }
  }

  async return(): Promise<IteratorResult<Delivery<T>, undefined>> {
    if (this.#inHand) this.#state?.membership.finished(this.#inHand);
    await this.#state?.subscription.unsubscribe();
    this.#end(undefined);
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.return().then(() => undefined);
  }

  /** @internal */
  onDone(tell: (error: PrombusError | undefined) => void): void {
    this.#tellDone = tell;
  }

  #start(): Opened {
    if (this.#state) return this.#state;
    this.#state = this.#open({
      onDeliveries: () => this.#wake(),
      onHookFailed: () => void this.#state?.subscription.unsubscribe(),
      onOver: (error) => {
        this.#end(error);
        this.#tellDone(error);
      },
    });
    this.#signal?.addEventListener("abort", () => this.#wake(), { once: true });
    return this.#state;
  }

  #end(error: PrombusError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // A client that was closed on purpose ends the loop; anything else is thrown there.
    if (error && error.code !== "closed") this.#error = error;
    this.#wake();
  }

  #wake(): void {
    for (const waiter of this.#waiters.drain()) waiter.wake();
  }
}
