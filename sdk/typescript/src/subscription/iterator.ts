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
  private state: Opened | undefined;
  private isOver = false;
  private error: unknown;
  private readonly waiters = new Deque<Waiter>();
  private tellDone: (error: PrombusError | undefined) => void = () => undefined;

  /** @internal */
  constructor(
    private readonly open: (listener: MembershipListener) => Opened,
    private readonly parser: PayloadParser<T>,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** The subscription, to pause and resume; it is there from the first `next()` on. */
  get subscription(): Subscription | undefined {
    return this.state?.subscription;
  }

  async next(): Promise<IteratorResult<Delivery<T>, undefined>> {
    this.signal?.throwIfAborted();
    const { membership, opened } = this.start();
    await opened;
    for (;;) {
      const delivery = membership.take();
      if (delivery) {
        const parsed = await this.parser.parse(delivery);
        if (parsed) return { done: false, value: parsed };
        continue;
      }
      this.signal?.throwIfAborted();
      if (this.error !== undefined) throw this.error;
      if (this.isOver) return { done: true, value: undefined };
      await new Promise<void>((wake) => this.waiters.push({ wake }));
    }
  }

  async return(): Promise<IteratorResult<Delivery<T>, undefined>> {
    await this.state?.subscription.unsubscribe();
    this.end(undefined);
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
    this.tellDone = tell;
  }

  private start(): Opened {
    if (this.state) return this.state;
    this.state = this.open({
      onDeliveries: () => this.wake(),
      onOver: (error) => {
        this.end(error);
        this.tellDone(error);
      },
    });
    this.signal?.addEventListener("abort", () => this.wake(), { once: true });
    return this.state;
  }

  private end(error: PrombusError | undefined): void {
    if (this.isOver) return;
    this.isOver = true;
    // A client that was closed on purpose ends the loop; anything else is thrown there.
    if (error && error.code !== "closed") this.error = error;
    this.wake();
  }

  private wake(): void {
    for (const waiter of this.waiters.drain()) waiter.wake();
  }
}
