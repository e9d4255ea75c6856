/** A topic as a table: the latest event of each key, one key's state now or at a time, and lists of states. */

import { PrombusError } from "../errors.js";
import type { EventRecord } from "../record.js";
import { type HttpTransport, pathText } from "../transport/http.js";

/** The state of a key. */
export interface KeyState<T = unknown> {
  key: string;
  payload: T;
  /** When, in epoch milliseconds. */
  ts: number;
  seq: number;
  /** A state from a snapshot has none. */
  id?: string;
}

export interface ListOptions {
  offset?: number;
  limit?: number;
  /** Only keys that begin with this. */
  prefix?: string;
  /** The states as they were at this epoch millisecond. */
  at?: number;
  /** Paths into the payload, with dots between, and what has to be there. */
  where?: Record<string, string | number | boolean>;
  signal?: AbortSignal;
}

/** A page of states in the order of their keys. */
export interface ListPage<T = unknown> {
  topic: string;
  /** How many keys fit, on all pages together. */
  total: number;
  offset: number;
  count: number;
  items: KeyState<T>[];
  /** The `offset` of the next page; null where there is no more. */
  next: number | null;
}

interface LatestPage<T> {
  events: EventRecord<T>[];
  next: string | null;
}

/** Keys that one request names. */
const KEYS_A_REQUEST = 100;

export async function latestByKey<T>(http: HttpTransport, topic: string, keys: readonly string[], signal?: AbortSignal): Promise<Map<string, EventRecord<T>>> {
  const found = new Map<string, EventRecord<T>>();
  for (let at = 0; at < keys.length; at += KEYS_A_REQUEST) {
    const query = { topic, key: keys.slice(at, at + KEYS_A_REQUEST) };
    const { events } = await http.json<LatestPage<T>>({ path: "/latest-by-key", query, signal });
    for (const event of events) if (event.key !== undefined) found.set(event.key, event);
  }
  return found;
}

/** The latest event of each key, in the order of the keys. */
export async function* latestEvents<T>(http: HttpTransport, topic: string, options: { prefix?: string; signal?: AbortSignal }): AsyncGenerator<EventRecord<T>, void, undefined> {
  const { prefix, signal } = options;
  let after: string | undefined;
  do {
    const page: LatestPage<T> = await http.json<LatestPage<T>>({ path: "/latest-by-key", query: { topic, prefix, after }, signal });
    yield* page.events;
    after = page.next ?? undefined;
  } while (after !== undefined);
}

/** The state of a key, now or at a time; undefined where it has none. Rejects with `history_gone` where that is not known. */
export async function stateAt<T>(http: HttpTransport, topic: string, key: string, at?: number, signal?: AbortSignal): Promise<KeyState<T> | undefined> {
  let response: Response;
  try {
    response = await http.send({ path: `/snap/${pathText(topic)}/${pathText(key)}`, query: { at }, signal });
  } catch (error) {
    if (error instanceof PrombusError && (error.code === "unknown_key" || error.code === "deleted_key")) return undefined;
    throw error;
  }
  const number = (name: string): number => Number(response.headers.get(name));
  const id = response.headers.get("x-event-id");
  const state = { key, payload: (await response.json()) as T, ts: number("x-event-ts"), seq: number("x-event-seq") };
  return id === null ? state : { ...state, id };
}

export async function list<T>(http: HttpTransport, topic: string, options: ListOptions): Promise<ListPage<T>> {
  const { where = {}, signal, ...rest } = options;
  const fields = Object.fromEntries(Object.entries(where).map(([path, value]) => [`payload.${path}`, value]));
  return http.json<ListPage<T>>({ path: `/list/${pathText(topic)}`, query: { ...rest, ...fields }, signal });
}
