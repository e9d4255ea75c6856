/** The client: everything a user calls. */

import { messageOf } from "./errors.js";
import { getCursor, seek, type SeekResult } from "./http/groups.js";
import { pull, type PulledDelivery, type PullOptions } from "./http/pull.js";
import { exportEvents, type ExportOptions, replay, type ReplayOptions } from "./http/read.js";
import { type KeyState, latestByKey, latestEvents, list, type ListOptions, type ListPage, stateAt } from "./http/state.js";
import { type ClientEvents, type ConnectionState, Link } from "./link/link.js";
import { type ClientOptions, settingsOf } from "./options.js";
import { type BatchResult, type PublishCallOptions, Publisher } from "./publish/publisher.js";
import type { CursorPosition, EventRecord, OutgoingEvent, StartOptions, StoredRecord } from "./record.js";
import { loadState, type LoadStateOptions, type StateTable } from "./state_table.js";
import type { Handler } from "./subscription/handlers.js";
import type { DeliveryIterator } from "./subscription/iterator.js";
import type { SubscribeOptions } from "./subscription/options.js";
import { consume, subscribe, type Subscription } from "./subscription/subscription.js";
import { nameOf, type Topic, type TopicName } from "./topic.js";
import { abortable, sleep } from "./timers.js";
import { HttpTransport } from "./transport/http.js";

/** Connects to a server. Resolves when the connection is up and the token accepted. */
export async function connect(options: ClientOptions): Promise<Client> {
  const client = new Client(options);
  await client.ready();
  return client;
}

/** A connection to a server that is made again when it breaks. Made by {@link connect}. */
export class Client {
  readonly #link: Link;
  readonly #http: HttpTransport;
  readonly #publisher: Publisher;
  readonly #subscriptions = new Set<Subscription>();
  readonly #started: Promise<void>;
  #closing: Promise<void> | undefined;

  /** Starts connecting; {@link ready} says when that is done. */
  constructor(options: ClientOptions) {
    const { signal } = options;
    signal?.throwIfAborted();
    this.#link = new Link(settingsOf(options));
    this.#http = new HttpTransport(this.#link);
    this.#publisher = new Publisher(this.#link);
    this.#started = abortable(this.#link.start(), signal);
    // A caller that does not await `ready` listens for the event `closed`.
    this.#started.catch(() => undefined);
    signal?.addEventListener("abort", () => this.#link.close(), { once: true });
  }

  /** Resolves with the first connection. */
  ready(): Promise<void> {
    return this.#started;
  }

  get state(): ConnectionState {
    return this.#link.state;
  }

  /** Calls back on changes of the connection; the result stops that. */
  on<K extends keyof ClientEvents>(event: K, listener: (detail: ClientEvents[K]) => void): () => void {
    return this.#link.events.on(event, listener);
  }

  /**
   * Publishes an event; resolves to the stored record once it is durable. Calls that are made together share few
   * messages, so there is no need to await each. After a break what was not acknowledged is sent again under the same id.
   */
  publish<In>(topic: Topic<In, unknown>, payload: NoInfer<In>, options?: PublishCallOptions): Promise<StoredRecord<In>>;
  publish<T>(topic: string, payload: T, options?: PublishCallOptions): Promise<StoredRecord<T>>;
  publish<T>(topic: TopicName<T, unknown>, payload: T, options?: PublishCallOptions): Promise<StoredRecord<T>> {
    return this.#publisher.publish(topic, payload, options);
  }

  /** Publishes events in order, with one outcome for each. */
  publishBatch<E extends readonly OutgoingEvent[]>(events: E, options: PublishCallOptions = {}): Promise<{ -readonly [K in keyof E]: BatchResult<E[K]["payload"]> }> {
    return this.#publisher.batch(events, options) as Promise<{ -readonly [K in keyof E]: BatchResult<E[K]["payload"]> }>;
  }

  /**
   * Runs a handler for each event of a topic, or of a pattern, through a durable group (`null`: an ephemeral one).
   * Acknowledges when it returns, NACKs with the error's message when it throws, and extends leases meanwhile.
   */
  subscribe<T>(topic: TopicName<unknown, T>, group: string | null, handler: Handler<T>, options: SubscribeOptions<T> = {}): Promise<Subscription> {
    return subscribe(this.#link, topic, group ?? undefined, handler, options, (made) => this.#track(made));
  }

  /** Deliveries for a `for await` loop. Each has to be settled, and leaving the loop unsubscribes. */
  consume<T>(topic: TopicName<unknown, T>, group: string | null, options: Omit<SubscribeOptions<T>, "manualAck" | "concurrency"> = {}): DeliveryIterator<T> {
    return consume(this.#link, topic, group ?? undefined, options, (made) => this.#track(made));
  }

  /** Takes up to `max` events without a socket. */
  pull<T>(topic: TopicName<unknown, T>, group: string, options: PullOptions = {}): Promise<PulledDelivery<T>[]> {
    return pull(this.#http, nameOf(topic), group, options);
  }

  /** Stored events in their order. */
  replay<T>(topic: TopicName<unknown, T>, options: ReplayOptions = {}): AsyncGenerator<EventRecord<T>, void, undefined> {
    return replay(this.#http, nameOf(topic), options);
  }

  /** Every event of a time, streamed, by ts then seq. */
  export<T>(topic: TopicName<unknown, T>, options: ExportOptions = {}): AsyncGenerator<EventRecord<T>, void, undefined> {
    return exportEvents(this.#http, nameOf(topic), options);
  }

  /** The latest event of each of these keys; keys without one are left out. */
  latestByKey<T>(topic: TopicName<unknown, T>, keys: readonly string[], options: { signal?: AbortSignal } = {}): Promise<Map<string, EventRecord<T>>> {
    return latestByKey(this.#http, nameOf(topic), keys, options.signal);
  }

  /** The latest event of every key, in the order of the keys. */
  latestEvents<T>(topic: TopicName<unknown, T>, options: { prefix?: string; signal?: AbortSignal } = {}): AsyncGenerator<EventRecord<T>, void, undefined> {
    return latestEvents(this.#http, nameOf(topic), options);
  }

  /** The state of a key, now or at an epoch millisecond; undefined where it has none. */
  stateAt<T>(topic: TopicName<unknown, T>, key: string, at?: number, options: { signal?: AbortSignal } = {}): Promise<KeyState<T> | undefined> {
    return stateAt(this.#http, nameOf(topic), key, at, options.signal);
  }

  /** A page of the states of a topic's keys. */
  list<T>(topic: TopicName<unknown, T>, options: ListOptions = {}): Promise<ListPage<T>> {
    return list(this.#http, nameOf(topic), options);
  }

  /** The topic as a table that keeps itself up to date: what there is, then every change, without a gap. */
  loadState<T>(topic: TopicName<unknown, T>, options: LoadStateOptions = {}): Promise<StateTable<T>> {
    return loadState(this.#link, this.#http, topic, options);
  }

  /** Where a group is; null where there is no such group. */
  getCursor(topic: TopicName<unknown, unknown>, group: string, options: { signal?: AbortSignal } = {}): Promise<CursorPosition | null> {
    return getCursor(this.#http, nameOf(topic), group, options.signal);
  }

  /** Sets a group's cursor, or with `dryRun` says what that would do. */
  seek(topic: TopicName<unknown, unknown>, group: string, to: StartOptions & { dryRun?: boolean }, options: { signal?: AbortSignal } = {}): Promise<SeekResult> {
    return seek(this.#http, nameOf(topic), group, to, options.signal);
  }

  /**
   * Unsubscribes, waiting for the handlers that run, waits for the replies to what was published, and disconnects; all
   * within `closeTimeoutMs`. What is not acknowledged by then rejects with `closed`.
   */
  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal The HTTP side, for what is built on a client. */
  get transport(): HttpTransport {
    return this.#http;
  }

  #track(subscription: Subscription): void {
    this.#subscriptions.add(subscription);
    void subscription.done.then(() => this.#subscriptions.delete(subscription));
  }

  async #shutDown(): Promise<void> {
    const overdue = new AbortController();
    const timeout = sleep(this.#link.settings.closeTimeoutMs, overdue.signal).catch(() => undefined);
    await Promise.race([this.#drain(), timeout]);
    overdue.abort();
    this.#link.close();
    await this.#link.over;
  }

  async #drain(): Promise<void> {
    try {
      await Promise.all([...this.#subscriptions].map((subscription) => subscription.unsubscribe()));
      this.#publisher.isClosing = true;
      while (this.#link.outbox.size > 0 && !this.#link.ended) await sleep(DRAIN_CHECK_MS);
    } catch (error) {
      this.#link.settings.logger.error?.("prombus: closing failed", { error: messageOf(error) });
    }
  }
}

/** How often a closing client looks whether its publishes are acknowledged. */
const DRAIN_CHECK_MS = 2;
