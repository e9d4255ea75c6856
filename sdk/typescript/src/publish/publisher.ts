/** Publishing: from a call to a promise of the stored record. */

import { closedError, type PrombusError } from "../errors.js";
import { IdGenerator } from "../ids.js";
import type { Link } from "../link/link.js";
import type { OutgoingEvent, PublishOptions, StoredRecord } from "../record.js";
import { checkPayload, nameOf, schemaOf, type TopicName } from "../topic.js";
import { encodePayload, PublishEncoder, storedRecord, wireOptions } from "./encode.js";

/** Options of a single publish that are not the event's. */
export interface PublishCallOptions extends PublishOptions {
  /** Gives up waiting. An event that was sent already may be stored all the same. */
  signal?: AbortSignal;
  /** Whether a rate limit is waited out; the client's setting by default. */
  waitForRateLimit?: boolean;
}

/** The outcome of one event of a batch. */
export type BatchResult<T> = { ok: true; record: StoredRecord<T> } | { ok: false; error: PrombusError };

export class Publisher {
  readonly #encoder = new PublishEncoder();
  readonly #ids = new IdGenerator();
  /** Takes nothing new: the client is closing. */
  isClosing = false;

  readonly #link: Link;

  constructor(link: Link) {
    this.#link = link;
  }

  publish<In>(topic: TopicName<In, unknown>, payload: In, options: PublishCallOptions | undefined): Promise<StoredRecord<In>> {
    const name = nameOf(topic);
    const schema = schemaOf(topic);
    if (!schema) return this.#send(name, payload, options);
    const checked = new Promise<void>((resolve) => resolve(checkPayload(schema, name, payload)));
    return checked.then(() => this.#send(name, payload, options));
  }

  /** All at once and in order; each has its own outcome. */
  async batch<T>(events: readonly OutgoingEvent<T>[], options: PublishCallOptions): Promise<BatchResult<T>[]> {
    const settled = await Promise.allSettled(events.map(async ({ topic, payload, opts }) => this.#send(topic, payload, { ...options, ...opts })));
    options.signal?.throwIfAborted();
    return settled.map((result) =>
      result.status === "fulfilled" ? { ok: true, record: result.value } : { ok: false, error: result.reason as PrombusError },
    );
  }

  #send<T>(topic: string, payload: T, options: PublishCallOptions | undefined): Promise<StoredRecord<T>> {
    return new Promise((resolve, reject) => {
      if (this.isClosing) return reject(closedError());
      if (options?.signal?.aborted) return reject(options.signal.reason);
      const { idempotent, trace, waitForRateLimit } = this.#link.settings;
      const givenId = options?.id;
      const id = givenId ?? (idempotent ? this.#ids.generate(Date.now()) : undefined);
      const wire = options || trace.inject ? this.#wire(options ?? {}, id) : undefined;
      const signal = options?.signal;
      const onAbort = (): void => {
        withdraw?.();
        reject(signal?.reason);
      };
      const forget = (): void => signal?.removeEventListener("abort", onAbort);
      const withdraw = this.#link.outbox.push({
        text: this.#encoder.encode(topic, encodePayload(payload), wire, id),
        isIdempotent: id !== undefined,
        hasGeneratedId: givenId === undefined,
        waitForRateLimit: options?.waitForRateLimit ?? waitForRateLimit,
        resolve: (receipt) => {
          forget();
          resolve(storedRecord(topic, payload, wire, receipt));
        },
        reject: (error) => {
          forget();
          reject(error);
        },
      });
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#link.touch();
    });
  }

  #wire(options: PublishOptions, id: string | undefined): PublishOptions {
    const traced = this.#link.settings.trace.inject?.();
    return wireOptions(options, id, traced ? { ...traced, ...options.headers } : options.headers);
  }
}
