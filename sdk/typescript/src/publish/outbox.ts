/** Publishes from the call to the reply: those that wait to be sent, and those that are sent and not acknowledged. */

import { Deque } from "../deque.js";
import { type PrombusError, QueueFullError, UnknownOutcomeError } from "../errors.js";
import type { Receipt } from "./encode.js";

/** One publish. */
export interface PendingPublish {
  /** The frame without `corr` and the closing brace. */
  text: string;
  /** Whether sending it twice stores it once: it has an id. */
  isIdempotent: boolean;
  /** Whether the id was generated here, so that a duplicate is this very publish. */
  hasGeneratedId: boolean;
  waitForRateLimit: boolean;
  resolve(receipt: Receipt): void;
  reject(error: unknown): void;
}

interface Entry extends PendingPublish {
  corr: string;
  /** 0 before it is sent, then how often it was. */
  sent: number;
}

export interface OutboxLimits {
  maxInFlight: number;
  maxInFlightBytes: number;
  maxQueued: number;
  maxQueuedBytes: number;
}

/** A message is closed when it has this many characters, so that the server begins while the next one is written. */
const MESSAGE_CHARS = 48 << 10;
/** A rate limit without a time is waited out for this long, and none for longer than the second. */
const DEFAULT_RETRY_MS = 100;
const MAX_RETRY_MS = 30_000;
/** How few publishes are in flight, at the least, after rate limits. */
const MIN_WINDOW = 8;

export class Outbox {
  readonly #queued = new Deque<Entry>();
  readonly #inFlight = new Deque<Entry>();
  /** Rate-limited ones, sent again before all others when `resumeAtMs` has come. */
  #limited: Entry[] = [];
  #queuedBytes = 0;
  #inFlightBytes = 0;
  #nextCorr = 0;
  #resumeAtMs = 0;
  /** How many may be in flight: halved by a rate limit, growing back with each reply. */
  #window: number;
  #ended: PrombusError | undefined;
  /** Counts calls of `push`, so that the flush sees whether more are coming. */
  pushed = 0;

  readonly #limits: OutboxLimits;

  constructor(limits: OutboxLimits) {
    this.#limits = limits;
    this.#window = limits.maxInFlight;
  }

  /** Publishes that are not acknowledged. */
  get size(): number {
    return this.#queued.length + this.#inFlight.length + this.#limited.length;
  }

  /** Takes a publish in, or rejects it; what comes back takes it out again where it is not sent yet. */
  push(publish: PendingPublish): (() => boolean) | undefined {
    const bytes = publish.text.length;
    if (this.#ended) {
      publish.reject(this.#ended);
      return undefined;
    }
    const isFull = this.#queued.length >= this.#limits.maxQueued || this.#queuedBytes + bytes > this.#limits.maxQueuedBytes;
    if (isFull && this.#queued.length > 0) {
      publish.reject(new QueueFullError("queue_full", `${this.#queued.length} publishes wait to be sent`));
      return undefined;
    }
    this.#nextCorr += 1;
    this.pushed += 1;
    const entry = publish as Entry;
    entry.corr = String(this.#nextCorr);
    entry.sent = 0;
    this.#queued.push(entry);
    this.#queuedBytes += bytes;
    return () => this.#withdraw(entry);
  }

  /** The next message to send; nothing where there is none or no room for it. */
  nextMessage(nowMs: number): string | undefined {
    if (nowMs < this.#resumeAtMs || (this.#limited.length > 0 && this.#inFlight.length > 0)) return undefined;
    if (this.#limited.length > 0) this.#requeue(this.#limited.splice(0));
    let message = "";
    while (message.length < MESSAGE_CHARS) {
      const entry = this.#queued.peek();
      if (!entry || !this.#hasRoomFor(entry)) break;
      this.#queued.shift();
      this.#queuedBytes -= entry.text.length;
      this.#inFlightBytes += entry.text.length;
      entry.sent += 1;
      this.#inFlight.push(entry);
      message += (message ? "," : "[") + entry.text + ',"corr":"' + entry.corr + '"}';
    }
    return message ? message + "]" : undefined;
  }

  /** When sending goes on after a rate limit; 0 where none is waited out. */
  get resumesAtMs(): number {
    return this.#limited.length > 0 ? this.#resumeAtMs : 0;
  }

  /** The server stored a publish. False where the reply is not that of the oldest one. */
  stored(corr: string, receipt: Receipt): boolean {
    const entry = this.#takeOldest(corr);
    if (!entry) return false;
    if (this.#window < this.#limits.maxInFlight) this.#window += 1;
    if (receipt.duplicate && entry.hasGeneratedId && entry.sent > 1) receipt.duplicate = false;
    entry.resolve(receipt);
    return true;
  }

  /** The server rejected a publish. False where the reply is not that of the oldest one. */
  rejected(corr: string, error: PrombusError, nowMs: number): boolean {
    const entry = this.#takeOldest(corr);
    if (!entry) return false;
    if (error.code === "rate_limited" && entry.waitForRateLimit) {
      if (this.#limited.length === 0) this.#window = Math.max(MIN_WINDOW, this.#window >> 1);
      this.#limited.push(entry);
      this.#resumeAtMs = nowMs + Math.min(MAX_RETRY_MS, error.retryAfterMs ?? DEFAULT_RETRY_MS);
    } else if (error.code === "shutting_down" && entry.isIdempotent) {
      // The next server takes it; this one closes the connection in a moment.
      this.#limited.push(entry);
      this.#resumeAtMs = nowMs + DEFAULT_RETRY_MS;
    } else {
      entry.reject(error);
    }
    return true;
  }

  /** The connection is gone: what may be sent again is queued again before all others. */
  rewind(): void {
    const again: Entry[] = [];
    for (const entry of this.#inFlight.drain()) {
      if (entry.isIdempotent) again.push(entry);
      else entry.reject(new UnknownOutcomeError("unknown_outcome", "the connection broke before the reply; publish with an id"));
    }
    this.#inFlightBytes = 0;
    this.#resumeAtMs = 0;
    this.#requeue([...this.#limited.splice(0), ...again]);
  }

  /** The client ended: everything is rejected with that. */
  end(error: PrombusError): void {
    this.#ended = error;
    const all = [...this.#inFlight.drain(), ...this.#limited.splice(0), ...this.#queued.drain()];
    this.#inFlightBytes = this.#queuedBytes = 0;
    for (const entry of all) entry.reject(error);
  }

  #requeue(entries: Entry[]): void {
    for (const entry of entries) this.#queuedBytes += entry.text.length;
    this.#queued.prepend(entries);
  }

  #takeOldest(corr: string): Entry | undefined {
    const entry = this.#inFlight.peek();
    if (entry?.corr !== corr) return undefined;
    this.#inFlight.shift();
    this.#inFlightBytes -= entry.text.length;
    return entry;
  }

  #hasRoomFor(entry: Entry): boolean {
    if (this.#inFlight.length === 0) return true;
    return this.#inFlight.length < this.#window && this.#inFlightBytes + entry.text.length <= this.#limits.maxInFlightBytes;
  }

  #withdraw(entry: Entry): boolean {
    if (entry.sent > 0) return false;
    const before = this.#queued.length;
    this.#queued.retain((other) => other !== entry);
    if (this.#queued.length === before) return false;
    this.#queuedBytes -= entry.text.length;
    return true;
  }
}
