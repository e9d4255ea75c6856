import { Deque } from "../deque.js";
const RECENT_MS = 10_000;
const MAX_RECENT = 262_144;
const REPEATED_MS = 120_000;
const MAX_REPEATED = 524_288;
export class SettledMemory {
    #recent = new Deque();
    #recentCount = 0;
    #repeated = new Set();
    #repeatedUntilMs = 0;
    confirmed(keys, nowMs) {
        if (this.#repeated.size > 0)
            for (const key of keys)
                this.#repeated.delete(key);
        this.#recent.push({ atMs: nowMs, keys });
        this.#recentCount += keys.length;
        for (let oldest = this.#recent.peek(); oldest && this.#recent.length > 1; oldest = this.#recent.peek()) {
            if (oldest.atMs > nowMs - RECENT_MS && this.#recentCount <= MAX_RECENT)
                break;
            this.#recent.shift();
            this.#recentCount -= oldest.keys.length;
        }
    }
    onDisconnect(unconfirmed, nowMs) {
        for (const { atMs, keys } of this.#recent.drain()) {
            if (atMs > nowMs - RECENT_MS)
                this.expect(keys, nowMs);
        }
        this.#recentCount = 0;
        this.expect(unconfirmed, nowMs);
    }
    expect(keys, nowMs) {
        if (nowMs > this.#repeatedUntilMs)
            this.#repeated.clear();
        this.#repeatedUntilMs = nowMs + REPEATED_MS;
        for (const key of keys)
            if (this.#repeated.size < MAX_REPEATED)
                this.#repeated.add(key);
    }
    isRepeated(key, nowMs) {
        if (this.#repeated.size === 0)
            return false;
        if (nowMs > this.#repeatedUntilMs) {
            this.#repeated.clear();
            return false;
        }
        return this.#repeated.has(key);
    }
}
