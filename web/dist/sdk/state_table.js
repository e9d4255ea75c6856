import { BadOptionError, UnknownTopicError } from "./errors.js";
import { latestEvents } from "./http/state.js";
import { Listeners } from "./listeners.js";
import { subscribe } from "./subscription/subscription.js";
import { nameOf } from "./topic.js";
import { pathText } from "./transport/http.js";
const DEFAULT_MAX_KEYS = 1_000_000;
const FOLLOW_IN_FLIGHT = 1_000;
export class StateTable {
    #states = new Map();
    #listeners = new Listeners((error) => this.#onThrow(error));
    #subscription;
    #overflow;
    #maxKeys;
    #onThrow;
    constructor(maxKeys, onThrow) {
        this.#maxKeys = maxKeys;
        this.#onThrow = onThrow;
    }
    get size() {
        return this.#states.size;
    }
    get(key) {
        return this.#states.get(key);
    }
    has(key) {
        return this.#states.has(key);
    }
    values() {
        return this.#states.values();
    }
    async done() {
        const error = await this.#subscription?.done;
        return this.#overflow ?? error;
    }
    onChange(listener) {
        return this.#listeners.on("change", listener);
    }
    async close() {
        await this.#subscription?.unsubscribe();
    }
    [Symbol.asyncDispose]() {
        return this.close();
    }
    followedBy(subscription) {
        this.#subscription = subscription;
    }
    follow(event) {
        try {
            if (!this.#overflow)
                this.apply(event);
        }
        catch (error) {
            this.#overflow = error;
            void this.#subscription?.unsubscribe();
        }
    }
    apply(event) {
        const { key } = event;
        if (key === undefined || event.seq <= (this.#states.get(key)?.seq ?? 0))
            return;
        const state = isTombstone(event.payload) ? undefined : { key, payload: event.payload, ts: event.ts, seq: event.seq, id: event.id };
        if (!state)
            this.#states.delete(key);
        else if (this.#states.has(key) || this.#states.size < this.#maxKeys)
            this.#states.set(key, state);
        else
            throw new BadOptionError("bad_option", `the topic has more than maxKeys (${this.#maxKeys}) keys`);
        this.#listeners.emit("change", { key, state, event });
    }
}
export async function loadState(link, http, topic, options) {
    const { prefix, maxKeys = DEFAULT_MAX_KEYS, signal } = options;
    const name = nameOf(topic);
    const table = new StateTable(maxKeys, (error) => link.settings.logger.error?.("prombus: a listener threw", { error }));
    const tail = await tailOf(http, name, signal);
    if (tail > 0) {
        const reading = { ...(prefix === undefined ? {} : { prefix }), ...(signal ? { signal } : {}) };
        for await (const event of latestEvents(http, name, reading))
            table.apply(event);
    }
    const follow = (event) => {
        if (prefix === undefined || event.key?.startsWith(prefix))
            table.follow(event);
    };
    const from = { from: "seq", seq: tail + 1, maxInFlight: FOLLOW_IN_FLIGHT, ...(signal ? { signal } : {}) };
    await subscribe(link, topic, undefined, ({ event }) => follow(event), from, (subscription) => table.followedBy(subscription));
    return table;
}
async function tailOf(http, topic, signal) {
    try {
        const { tail_seq } = await http.json({ path: `/topics/${pathText(topic)}`, signal });
        return tail_seq;
    }
    catch (error) {
        if (error instanceof UnknownTopicError)
            return 0;
        throw error;
    }
}
function isTombstone(payload) {
    return payload === null || (typeof payload === "object" && payload._deleted === true);
}
