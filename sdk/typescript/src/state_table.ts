/** A topic's table in memory: loaded from the latest event of each key, then kept up to date, without a gap. */

import { BadOptionError, type PrombusError, UnknownTopicError } from "./errors.js";
import { latestEvents, type KeyState } from "./http/state.js";
import { Listeners } from "./listeners.js";
import type { Link } from "./link/link.js";
import type { EventRecord } from "./record.js";
import { type Subscription, subscribe } from "./subscription/subscription.js";
import { nameOf, type TopicName } from "./topic.js";
import { type HttpTransport, pathText } from "./transport/http.js";

export interface LoadStateOptions {
  /** Only keys that begin with this. */
  prefix?: string;
  /** Keys that the table may have (1,000,000); more end it with an error. */
  maxKeys?: number;
  signal?: AbortSignal;
}

/** A change of a key; `state` is undefined where it was deleted. */
export interface StateChange<T> {
  key: string;
  state: KeyState<T> | undefined;
  event: EventRecord<T>;
}

const DEFAULT_MAX_KEYS = 1_000_000;
/** Changes that are under way while the table follows. */
const FOLLOW_IN_FLIGHT = 1_000;

/** The states of all keys, and their changes as they come. */
export class StateTable<T = unknown> {
  readonly #states = new Map<string, KeyState<T>>();
  readonly #listeners = new Listeners<{ change: StateChange<T> }>((error) => this.#onThrow(error));
  #subscription: Subscription | undefined;
  #overflow: PrombusError | undefined;
  readonly #maxKeys: number;
  readonly #onThrow: (error: unknown) => void;

  /** @internal */
  constructor(maxKeys: number, onThrow: (error: unknown) => void) {
    this.#maxKeys = maxKeys;
    this.#onThrow = onThrow;
  }

  get size(): number {
    return this.#states.size;
  }

  get(key: string): KeyState<T> | undefined {
    return this.#states.get(key);
  }

  has(key: string): boolean {
    return this.#states.has(key);
  }

  values(): IterableIterator<KeyState<T>> {
    return this.#states.values();
  }

  /** Resolves when the table no longer follows, with the reason where it was not closed. */
  async done(): Promise<PrombusError | undefined> {
    const error = await this.#subscription?.done;
    return this.#overflow ?? error;
  }

  /** Calls back for each change; the result stops that. */
  onChange(listener: (change: StateChange<T>) => void): () => void {
    return this.#listeners.on("change", listener);
  }

  /** Stops following; what was loaded stays. */
  async close(): Promise<void> {
    await this.#subscription?.unsubscribe();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @internal */
  followedBy(subscription: Subscription): void {
    this.#subscription = subscription;
  }

  /** @internal Takes a change in; a table that has no room for it stops following. */
  follow(event: EventRecord<T>): void {
    try {
      if (!this.#overflow) this.apply(event);
    } catch (error) {
      this.#overflow = error as PrombusError;
      void this.#subscription?.unsubscribe();
    }
  }

  /** @internal Takes an event in, unless the table has a later one of the key. */
  apply(event: EventRecord<T>): void {
    const { key } = event;
    if (key === undefined || event.seq <= (this.#states.get(key)?.seq ?? 0)) return;
    const state = isTombstone(event.payload) ? undefined : { key, payload: event.payload, ts: event.ts, seq: event.seq, id: event.id };
    if (!state) this.#states.delete(key);
    else if (this.#states.has(key) || this.#states.size < this.#maxKeys) this.#states.set(key, state);
    else throw new BadOptionError("bad_option", `the topic has more than maxKeys (${this.#maxKeys}) keys`);
    this.#listeners.emit("change", { key, state, event });
  }
}

/**
 * Loads the table and follows. The position to follow from is read first, so whatever changes while the table is read
 * is followed, and what the table has already is recognised by its position.
 */
export async function loadState<T>(link: Link, http: HttpTransport, topic: TopicName<unknown, T>, options: LoadStateOptions): Promise<StateTable<T>> {
  const { prefix, maxKeys = DEFAULT_MAX_KEYS, signal } = options;
  const name = nameOf(topic);
  const table = new StateTable<T>(maxKeys, (error) => link.settings.logger.error?.("prombus: a listener threw", { error }));
  const tail = await tailOf(http, name, signal);
  if (tail > 0) {
    const reading = { ...(prefix === undefined ? {} : { prefix }), ...(signal ? { signal } : {}) };
    for await (const event of latestEvents<T>(http, name, reading)) table.apply(event);
  }
  const follow = (event: EventRecord<T>): void => {
    if (prefix === undefined || event.key?.startsWith(prefix)) table.follow(event);
  };
  const from = { from: "seq" as const, seq: tail + 1, maxInFlight: FOLLOW_IN_FLIGHT, ...(signal ? { signal } : {}) };
  await subscribe<T>(link, topic, undefined, ({ event }) => follow(event), from, (subscription) => table.followedBy(subscription));
  return table;
}

async function tailOf(http: HttpTransport, topic: string, signal: AbortSignal | undefined): Promise<number> {
  try {
    const { tail_seq } = await http.json<{ tail_seq: number }>({ path: `/topics/${pathText(topic)}`, signal });
    return tail_seq;
  } catch (error) {
    if (error instanceof UnknownTopicError) return 0;
    throw error;
  }
}

function isTombstone(payload: unknown): boolean {
  return payload === null || (typeof payload === "object" && (payload as { _deleted?: unknown })._deleted === true);
}
