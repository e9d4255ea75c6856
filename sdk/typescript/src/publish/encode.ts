/** PUBLISH frames, and the record that a publish resolves to. */

import { BadJsonError, messageOf } from "../errors.js";
import type { OutgoingEvent, PublishOptions, StoredRecord } from "../record.js";

/** The options as the server takes them; an option it does not know is `bad_frame`. */
export function wireOptions(options: PublishOptions, id: string | undefined, headers: Record<string, string> | undefined): PublishOptions {
  const { ts, key, tags, caused_by, sid, expect_seq, expect_key_seq, deliver_at, delay_ms, every, catch_up, also_publish } = options;
  const later = { deliver_at, delay_ms, every, catch_up, also_publish };
  return { id, ts, key, headers, tags, caused_by, sid, expect_seq, expect_key_seq, ...later } as PublishOptions;
}

/** The text of a payload. */
export function encodePayload(payload: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(payload);
  } catch (cause) {
    throw new BadJsonError("bad_json", `the payload is not JSON: ${messageOf(cause)}`, { cause });
  }
  if (text === undefined) throw new BadJsonError("bad_json", `the payload is not JSON: it is ${typeof payload}`);
  return text;
}

/** Adds a PUBLISH frame's text together, without `corr` and the closing brace. */
export class PublishEncoder {
  /** The text before the payload of the last topic; mostly the next one is the same. */
  #lastTopic: string | undefined;
  #lastHead = "";

  encode(topic: string, payload: string, options: PublishOptions | undefined, id: string | undefined): string {
    if (topic !== this.#lastTopic) {
      this.#lastHead = `{"op":"PUBLISH","topic":${JSON.stringify(topic)},"payload":`;
      this.#lastTopic = topic;
    }
    const head = this.#lastHead + payload;
    if (options) return `${head},"opts":${JSON.stringify(options)}`;
    return id === undefined ? head : `${head},"opts":{"id":"${id}"}`;
  }
}

/** What the server says of an event that it stored. */
export interface Receipt {
  id: string;
  seq: number;
  ts?: number | undefined;
  /** When it is to be published, where that is later. */
  due?: number | undefined;
  duplicate?: boolean | undefined;
}

/** The stored record: what was published, with what the server gave it. */
export function storedRecord<T>(topic: string, payload: T, options: PublishOptions | undefined, receipt: Receipt): StoredRecord<T> {
  const { id, seq } = receipt;
  // A server that does not say when it stored the event leaves the publisher's clock.
  const ts = receipt.ts ?? options?.ts ?? Date.now();
  if (!options) return receipt.duplicate ? { id, ts, topic, seq, payload, duplicate: true } : { id, ts, topic, seq, payload };
  const { sid, key, headers, caused_by, tags } = options;
  const record: StoredRecord<T> = { id, ts, topic, seq, payload };
  if (sid !== undefined) record.sid = sid;
  if (key !== undefined) record.key = key;
  if (headers !== undefined) record.headers = headers;
  if (caused_by !== undefined) record.caused_by = caused_by;
  if (tags !== undefined) record.tags = tags;
  if (receipt.due !== undefined) record.due = receipt.due;
  if (receipt.duplicate) record.duplicate = true;
  return record;
}

/** Events of an atomic step as the server takes them. */
export function stepEvents(events: readonly OutgoingEvent[], traced: Record<string, string> | undefined): Required<OutgoingEvent>[] {
  return events.map(({ topic, payload, opts = {} }) => {
    const headers = traced ? { ...traced, ...opts.headers } : opts.headers;
    return { topic, payload, opts: wireOptions(opts, opts.id, headers) };
  });
}

/** The records of an atomic step. */
export function stepRecords(events: readonly Required<OutgoingEvent>[], receipts: readonly Receipt[] = []): StoredRecord[] {
  return events.flatMap(({ topic, payload, opts }, at) => {
    const receipt = receipts[at];
    return receipt ? [storedRecord(topic, payload, opts, receipt)] : [];
  });
}
