import { contextOf } from "../record.js";
export class Delivery {
    event;
    attempt;
    maxAttempts;
    epoch;
    leaseMs;
    leasedAtMs;
    receivedAtMs;
    isSettled = false;
    isTaken = false;
    #membership;
    constructor(membership, event, attempt, maxAttempts, epoch, leaseMs, leasedAtMs, receivedAtMs) {
        this.event = event;
        this.attempt = attempt;
        this.maxAttempts = maxAttempts;
        this.epoch = epoch;
        this.leaseMs = leaseMs;
        this.leasedAtMs = leasedAtMs;
        this.receivedAtMs = receivedAtMs;
        this.#membership = membership;
    }
    get payload() {
        return this.event.payload;
    }
    get context() {
        return contextOf(this.event, this.attempt, this.maxAttempts);
    }
    ack() {
        if (this.#settle())
            this.#membership.ack(this);
    }
    ackConfirmed() {
        return this.#settle() ? this.#membership.ackConfirmed(this) : Promise.resolve();
    }
    nack(reason, delayMs) {
        if (this.#settle())
            this.#membership.nack(this, reason, delayMs);
    }
    extend(extendMs) {
        if (!this.isSettled)
            this.#membership.extend([this], extendMs);
    }
    async ackAndPublish(events) {
        const stored = await this.#membership.ackAndPublish(this, events);
        return stored;
    }
    #settle() {
        if (this.isSettled)
            return false;
        this.isSettled = true;
        return true;
    }
}
