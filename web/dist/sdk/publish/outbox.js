import { Deque } from "../deque.js";
import { QueueFullError, UnknownOutcomeError } from "../errors.js";
const MESSAGE_CHARS = 48 << 10;
const DEFAULT_RETRY_MS = 100;
const MAX_RETRY_MS = 30_000;
const MIN_WINDOW = 8;
export class Outbox {
    #queued = new Deque();
    #inFlight = new Deque();
    #limited = [];
    #queuedBytes = 0;
    #inFlightBytes = 0;
    #nextCorr = 0;
    #resumeAtMs = 0;
    #window;
    #ended;
    pushed = 0;
    #limits;
    constructor(limits) {
        this.#limits = limits;
        this.#window = limits.maxInFlight;
    }
    get size() {
        return this.#queued.length + this.#inFlight.length + this.#limited.length;
    }
    push(publish) {
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
        const entry = publish;
        entry.corr = String(this.#nextCorr);
        entry.sent = 0;
        this.#queued.push(entry);
        this.#queuedBytes += bytes;
        return () => this.#withdraw(entry);
    }
    nextMessage(nowMs) {
        if (nowMs < this.#resumeAtMs || (this.#limited.length > 0 && this.#inFlight.length > 0))
            return undefined;
        if (this.#limited.length > 0)
            this.#requeue(this.#limited.splice(0));
        let message = "";
        while (message.length < MESSAGE_CHARS) {
            const entry = this.#queued.peek();
            if (!entry || !this.#hasRoomFor(entry))
                break;
            this.#queued.shift();
            this.#queuedBytes -= entry.text.length;
            this.#inFlightBytes += entry.text.length;
            entry.sent += 1;
            this.#inFlight.push(entry);
            message += (message ? "," : "[") + entry.text + ',"corr":"' + entry.corr + '"}';
        }
        return message ? message + "]" : undefined;
    }
    get resumesAtMs() {
        return this.#limited.length > 0 ? this.#resumeAtMs : 0;
    }
    stored(corr, receipt) {
        const entry = this.#takeOldest(corr);
        if (!entry)
            return false;
        if (this.#window < this.#limits.maxInFlight)
            this.#window += 1;
        if (receipt.duplicate && entry.hasGeneratedId && entry.sent > 1)
            receipt.duplicate = false;
        entry.resolve(receipt);
        return true;
    }
    rejected(corr, error, nowMs) {
        const entry = this.#takeOldest(corr);
        if (!entry)
            return false;
        if (error.code === "rate_limited" && entry.waitForRateLimit) {
            if (this.#limited.length === 0)
                this.#window = Math.max(MIN_WINDOW, this.#window >> 1);
            this.#limited.push(entry);
            this.#resumeAtMs = nowMs + Math.min(MAX_RETRY_MS, error.retryAfterMs ?? DEFAULT_RETRY_MS);
        }
        else if (error.code === "shutting_down" && entry.isIdempotent) {
            this.#limited.push(entry);
            this.#resumeAtMs = nowMs + DEFAULT_RETRY_MS;
        }
        else {
            entry.reject(error);
        }
        return true;
    }
    rewind() {
        const again = [];
        for (const entry of this.#inFlight.drain()) {
            if (entry.isIdempotent)
                again.push(entry);
            else
                entry.reject(new UnknownOutcomeError("unknown_outcome", "the connection broke before the reply; publish with an id"));
        }
        this.#inFlightBytes = 0;
        this.#resumeAtMs = 0;
        this.#requeue([...this.#limited.splice(0), ...again]);
    }
    end(error) {
        this.#ended = error;
        const all = [...this.#inFlight.drain(), ...this.#limited.splice(0), ...this.#queued.drain()];
        this.#inFlightBytes = this.#queuedBytes = 0;
        for (const entry of all)
            entry.reject(error);
    }
    #requeue(entries) {
        for (const entry of entries)
            this.#queuedBytes += entry.text.length;
        this.#queued.prepend(entries);
    }
    #takeOldest(corr) {
        const entry = this.#inFlight.peek();
        if (entry?.corr !== corr)
            return undefined;
        this.#inFlight.shift();
        this.#inFlightBytes -= entry.text.length;
        return entry;
    }
    #hasRoomFor(entry) {
        if (this.#inFlight.length === 0)
            return true;
        return this.#inFlight.length < this.#window && this.#inFlightBytes + entry.text.length <= this.#limits.maxInFlightBytes;
    }
    #withdraw(entry) {
        if (entry.sent > 0)
            return false;
        const before = this.#queued.length;
        this.#queued.retain((other) => other !== entry);
        if (this.#queued.length === before)
            return false;
        this.#queuedBytes -= entry.text.length;
        return true;
    }
}
