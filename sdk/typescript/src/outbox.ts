/**
 * The outbox: events that a service writes in its own transaction, and a drainer that publishes them. Each goes out
 * under its row's id, so a crash between publishing and marking does not store it twice.
 */

import type { Client } from "./client.js";
import { messageOf, PrombusError } from "./errors.js";
import type { PublishOptions } from "./record.js";
import { backoffMs, sleep } from "./timers.js";

/** An event to be published later. */
export interface OutboxEvent {
  topic: string;
  payload: unknown;
  /** Made by the store where none is given. */
  id?: string;
  opts?: Omit<PublishOptions, "id">;
}

/** A row that a drainer holds for the time of its lease. */
export interface ClaimedEvent {
  /** What the store knows the row by. */
  row: number | string;
  id: string;
  topic: string;
  payload: unknown;
  opts: Omit<PublishOptions, "id">;
  /** How often it was claimed. */
  attempts: number;
}

/** Where the rows are. */
export interface OutboxStore {
  /** Adds a row in the caller's transaction; gives the event's id. */
  add(event: OutboxEvent): string | Promise<string>;
  /** Claims rows that are due, in their order. Rows of one topic and key are claimed in order only. */
  claimBatch(limit: number, leaseMs: number): ClaimedEvent[] | Promise<ClaimedEvent[]>;
  /** The event is in its topic. */
  markSent(row: ClaimedEvent["row"], seq: number): void | Promise<void>;
  /** Publishing failed. It is tried again at `retryAtMs`, or never where that is undefined. */
  markError(row: ClaimedEvent["row"], error: string, retryAtMs: number | undefined): void | Promise<void>;
  /** Makes rows whose lease ran out due again; gives their number. */
  requeueExpired(): number | Promise<number>;
}

export interface DrainerOptions {
  /** Rows that are claimed and published together (256). */
  batchSize?: number;
  /** How long a claim lasts (30 s). */
  leaseMs?: number;
  /** How often an empty outbox is looked at (200 ms). */
  intervalMs?: number;
  /** The first and the longest pause before a row is tried again (100 ms, 60 s). */
  retryBaseMs?: number;
  retryCapMs?: number;
  /** Stops the drainer. */
  signal?: AbortSignal;
}

/** A drainer at work. */
export interface OutboxDrainer {
  /** Finishes the batch at hand and stops. */
  stop(): Promise<void>;
  /** Publishes what is due now; gives the number of rows that were published. */
  drainNow(): Promise<number>;
}

/** Publishes rows of the outbox as they come, until it is stopped. */
export function runOutboxDrainer(outbox: OutboxStore, client: Client, options: DrainerOptions = {}): OutboxDrainer {
  const drainer = new Drainer(outbox, client, options);
  return drainer;
}

class Drainer implements OutboxDrainer {
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  /** One batch at a time. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #outbox: OutboxStore;
  readonly #client: Client;
  readonly #options: DrainerOptions;

  constructor(outbox: OutboxStore, client: Client, options: DrainerOptions) {
    this.#outbox = outbox;
    this.#client = client;
    this.#options = options;
    const { signal } = options;
    if (signal?.aborted) this.#stopping.abort();
    signal?.addEventListener("abort", () => this.#stopping.abort(), { once: true });
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  drainNow(): Promise<number> {
    const draining = this.#last.then(() => this.#drain());
    this.#last = draining.catch(() => undefined);
    return draining;
  }

  async #run(): Promise<void> {
    const { intervalMs = 200 } = this.#options;
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; ) {
      try {
        await this.drainNow();
        failures = 0;
        await sleep(intervalMs, signal).catch(() => undefined);
      } catch {
        // The store itself failed; the rows are as they were.
        failures += 1;
        await sleep(backoffMs(intervalMs, 30_000, failures, Math.random()), signal).catch(() => undefined);
      }
    }
  }

  async #drain(): Promise<number> {
    const { batchSize = 256, leaseMs = 30_000 } = this.#options;
    let published = 0;
    await this.#outbox.requeueExpired();
    for (;;) {
      const rows = await this.#outbox.claimBatch(batchSize, leaseMs);
      const outcomes = await Promise.all(rows.map((row) => this.#publish(row, leaseMs)));
      const sent = outcomes.filter(Boolean).length;
      published += sent;
      if (rows.length === 0 || sent === 0 || this.#stopping.signal.aborted) return published;
    }
  }

  async #publish(row: ClaimedEvent, leaseMs: number): Promise<boolean> {
    const { retryBaseMs = 100, retryCapMs = 60_000 } = this.#options;
    // Within the lease: later somebody else may publish the row, which is harmless, and mark it.
    const signal = AbortSignal.timeout(leaseMs);
    try {
      const { seq } = await this.#client.publish(row.topic, row.payload, { ...row.opts, id: row.id, signal });
      await this.#outbox.markSent(row.row, seq);
      return true;
    } catch (error) {
      const isFinal = error instanceof PrombusError && !error.retryable && FINAL.has(error.code);
      const retryAtMs = isFinal ? undefined : Date.now() + backoffMs(retryBaseMs, retryCapMs, row.attempts, Math.random());
      await this.#outbox.markError(row.row, messageOf(error), retryAtMs);
      return false;
    }
  }
}

/** Codes of rows that can never be published as they are. */
const FINAL = new Set(["bad_json", "bad_frame", "bad_topic", "too_large", "id_conflict", "schema_invalid"]);
