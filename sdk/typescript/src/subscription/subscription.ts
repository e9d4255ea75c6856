/** The handle of a subscription, and how it is made. */

import { messageOf, type PrombusError } from "../errors.js";
import type { Link } from "../link/link.js";
import type { EventRecord } from "../record.js";
import { nameOf, schemaOf, type TopicName } from "../topic.js";
import { abortable } from "../timers.js";
import { type Handler, HandlerRunner } from "./handlers.js";
import { DeliveryIterator } from "./iterator.js";
import { Membership } from "./membership.js";
import { type SubscribeOptions, subscriptionSettings } from "./options.js";
import { PayloadParser } from "./parsing.js";

/** A subscription with a handler at work. */
export class Subscription {
  #stopping: Promise<void> | undefined;
  readonly #membership: Membership;
  readonly #handlersIdle: () => Promise<void>;

  /** @internal */
  constructor(
    membership: Membership,
    handlersIdle: () => Promise<void>,
    /** Resolves when nothing more will come, with the reason where it was not `unsubscribe`. Never rejects. */
    readonly done: Promise<PrombusError | undefined>,
  ) {
    this.#membership = membership;
    this.#handlersIdle = handlersIdle;
  }

  get topic(): string {
    return this.#membership.topic;
  }

  /** The group; that of an ephemeral subscription is named by the server. */
  get group(): string {
    return this.#membership.group;
  }

  /** Stops delivery to this subscription; handlers that run go on. */
  pause(): void {
    this.#membership.setPaused(true);
  }

  resume(): void {
    this.#membership.setPaused(false);
  }

  /**
   * Takes nothing new, waits for the handlers that run, and leaves when their acknowledgements are confirmed. A handler
   * that calls it must not await it.
   */
  unsubscribe(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.unsubscribe();
  }

  async #stop(): Promise<void> {
    this.#membership.stop();
    await this.#handlersIdle();
    await this.#membership.letGo();
    await this.#membership.leave();
  }
}

/** Runs a handler for each delivery. */
export async function subscribe<T>(
  link: Link,
  topic: TopicName<unknown, T>,
  group: string | undefined,
  handler: Handler<T>,
  options: SubscribeOptions<T>,
  onMade: (subscription: Subscription) => void,
): Promise<Subscription> {
  options.signal?.throwIfAborted();
  const settings = subscriptionSettings(options);
  let onOver: (error: PrombusError | undefined) => void = () => undefined;
  const done = new Promise<PrombusError | undefined>((resolve) => (onOver = resolve));
  const membership: Membership = new Membership(link, nameOf(topic), group, settings, functionFilter(options), {
    onDeliveries: () => runner.pump(),
    onHookFailed: () => void subscription.unsubscribe(),
    onOver: (error) => onOver(error),
  });
  const parser = new PayloadParser(schemaOf(topic), options.onInvalid);
  const runner = new HandlerRunner(membership, handler, parser, settings, link.settings);
  const subscription = new Subscription(membership, () => runner.idle(), done);
  onMade(subscription);
  await leaveOnAbort(membership.open(), subscription, options.signal, link);
  return subscription;
}

/** Deliveries as an async iterable; leaving the loop unsubscribes. */
export function consume<T>(
  link: Link,
  topic: TopicName<unknown, T>,
  group: string | undefined,
  options: Omit<SubscribeOptions<T>, "manualAck" | "concurrency">,
  onMade: (subscription: Subscription) => void,
): DeliveryIterator<T> {
  const settings = subscriptionSettings(options);
  const iterator = new DeliveryIterator<T>((listener) => {
    const membership = new Membership(link, nameOf(topic), group, settings, functionFilter(options), listener);
    const done = new Promise<PrombusError | undefined>((resolve) => iterator.onDone(resolve));
    const subscription = new Subscription(membership, async () => undefined, done);
    onMade(subscription);
    const opened = leaveOnAbort(membership.open(), subscription, options.signal, link);
    return { membership, subscription, opened };
  }, new PayloadParser(schemaOf(topic), options.onInvalid), options.signal);
  return iterator;
}

function functionFilter<T>(options: SubscribeOptions<T>): ((event: EventRecord) => boolean) | undefined {
  return typeof options.filter === "function" ? (options.filter as (event: EventRecord) => boolean) : undefined;
}

/** Waits for the subscription; an aborted signal leaves it, now or later. */
async function leaveOnAbort(opened: Promise<void>, subscription: Subscription, signal: AbortSignal | undefined, link: Link): Promise<void> {
  const onAbort = (): void => {
    subscription.unsubscribe().catch((error: unknown) => link.settings.logger.error?.("prombus: unsubscribing failed", { error: messageOf(error) }));
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  void subscription.done.then(() => signal?.removeEventListener("abort", onAbort));
  await abortable(opened, signal);
}
