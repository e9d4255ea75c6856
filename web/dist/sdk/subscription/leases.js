import { background } from "../timers.js";
const MIN_CHECK_MS = 100;
export class Leases {
    #held = new Map();
    #timer;
    #maxExtensionMs;
    #extend;
    constructor(maxExtensionMs, extend) {
        this.#maxExtensionMs = maxExtensionMs;
        this.#extend = extend;
    }
    get size() {
        return this.#held.size;
    }
    get(key) {
        return this.#held.get(key);
    }
    hold(key, delivery) {
        this.#held.set(key, delivery);
        if (this.#timer === undefined && this.#maxExtensionMs > 0)
            this.#schedule(delivery.leaseMs);
    }
    release(key) {
        this.#held.delete(key);
    }
    releaseWaiting() {
        for (const [key, delivery] of this.#held)
            if (!delivery.isTaken)
                this.#held.delete(key);
    }
    end() {
        this.#held.clear();
        clearTimeout(this.#timer);
        this.#timer = undefined;
    }
    #schedule(leaseMs) {
        this.#timer = background(() => this.#check(), Math.max(MIN_CHECK_MS, leaseMs / 3));
    }
    #check() {
        this.#timer = undefined;
        const nowMs = Date.now();
        const due = [];
        let shortestMs = Infinity;
        for (const delivery of this.#held.values()) {
            shortestMs = Math.min(shortestMs, delivery.leaseMs);
            const isOverCeiling = nowMs - delivery.receivedAtMs >= this.#maxExtensionMs;
            if (delivery.isSettled || isOverCeiling || nowMs - delivery.leasedAtMs < delivery.leaseMs / 4)
                continue;
            delivery.leasedAtMs = nowMs;
            due.push(delivery);
        }
        if (due.length > 0)
            this.#extend(due);
        if (this.#held.size > 0)
            this.#schedule(shortestMs);
    }
}
