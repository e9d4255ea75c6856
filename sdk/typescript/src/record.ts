/** The nouns of the bus: records, contexts, cursors, and the options of publishing and subscribing. */

/** An event as it is stored. */
export interface EventRecord<T = unknown> {
  /** Made by the bus or chosen by the publisher, 1 to 64 printable ASCII characters. */
  id: string;
  /** Boot or session id of the publisher. */
  sid?: string;
  /** Epoch milliseconds. */
  ts: number;
  topic: string;
  /** Position in the topic: 1, 2, 3 … */
  seq: number;
  /** For compaction, ordering and partitioning. */
  key?: string;
  /** Only where the topic is partitioned. */
  partition?: number;
  headers?: Record<string, string>;
  payload: T;
  /** Ids of the events that caused this one. */
  caused_by?: string[];
  tags?: string[];
}

/** A record that was just published. */
export interface StoredRecord<T = unknown> extends EventRecord<T> {
  /** The topic held this id already; nothing was stored, and `id`, `seq` and `ts` are those of the first event. */
  duplicate?: boolean;
  /** It is to be published later, at this time; until then `seq` is 0. */
  due?: number;
}

/** What a publisher may say about an event. */
export interface PublishOptions {
  /** Publishing an id that the topic holds stores nothing. */
  id?: string;
  ts?: number;
  key?: string;
  headers?: Record<string, string>;
  tags?: string[];
  caused_by?: string[];
  sid?: string;
  /** Publish only if this is the topic's last position (0: it never had one); otherwise it is a `SeqMismatchError`. */
  expect_seq?: number;
  /** Publish only if the last event of the key is at this position (0: there is none). */
  expect_key_seq?: number;
  /** Publish at this time, in epoch milliseconds; the record that `publish` resolves to has `due` and no position yet. */
  deliver_at?: number;
  /** Publish after so many milliseconds. */
  delay_ms?: number;
  /** Publish again and again: an interval (`30s`) or a cron line with an optional time zone (`0 9 * * 1-5 Europe/Berlin`). */
  every?: string;
  /** Publish also for each time that was missed while the server was down, and not only for the last of them. */
  catch_up?: boolean;
  /** Publish the event in other versions to other topics too, all or none, with the same id, key, headers and so on. */
  also_publish?: AlsoPublish[];
}

/** An event in another version, for another topic. */
export interface AlsoPublish {
  topic: string;
  payload: unknown;
}

/** An event to be published, for batches. */
export interface OutgoingEvent<T = unknown> {
  topic: string;
  payload: T;
  opts?: PublishOptions;
}

/** A position in a topic. */
export interface CursorPosition {
  topic: string;
  lastId?: string;
  lastTs?: number;
  lastSeq?: number;
}

/** The circumstances of a delivery. */
export interface DeliveryContext {
  /** The number of this delivery of the event, from 1. */
  attempt: number;
  /** After this many failed deliveries the event is dead-lettered. */
  maxAttempts: number;
  /** The position of this event. */
  cursor: CursorPosition;
}

/** The context of a delivery of an event. */
export function contextOf({ topic, id, ts, seq }: EventRecord, attempt: number, maxAttempts: number): DeliveryContext {
  return { attempt, maxAttempts, cursor: { topic, lastId: id, lastTs: ts, lastSeq: seq } };
}

/** Where a new group, or a read, begins. */
export interface StartOptions {
  /** `ts`, `afterId` and `seq` need the field of that name. */
  from?: "latest" | "earliest" | "ts" | "afterId" | "seq";
  ts?: number;
  afterId?: string;
  seq?: number;
}

/** What a group wants to see; what does not match is settled unseen. */
export interface WireFilter {
  /** A pattern of the key. */
  key?: string;
  headers?: Record<string, string>;
  tags?: string[];
}

/** Options of a subscription that the server knows. */
export interface GroupOptions extends StartOptions {
  batchSize?: number;
  /** Delivered and not settled; the server sends no more. */
  maxInFlight?: number;
  ackTimeoutMs?: number;
  maxAttempts?: number;
  filter?: WireFilter;
  /** More topics in the same subscription. */
  topics?: string[];
  /** `key`: at most one event of a key in flight, in log order. */
  ordering?: "none" | "key";
  /** Each partition of the topic goes to one member of the group at a time; see `onAssigned` and `onRevoked`. */
  partitioned?: boolean;
  /** Events of earlier versions of their topic's schema come as ones of the latest. */
  upcast?: boolean;
}
