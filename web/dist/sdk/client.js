import { messageOf } from "./errors.js";
import { getCursor, seek } from "./http/groups.js";
import { pull } from "./http/pull.js";
import { exportEvents, replay } from "./http/read.js";
import { latestByKey, latestEvents, list, stateAt } from "./http/state.js";
import { Link } from "./link/link.js";
import { settingsOf } from "./options.js";
import { Publisher } from "./publish/publisher.js";
import { loadState } from "./state_table.js";
import { consume, subscribe } from "./subscription/subscription.js";
import { nameOf } from "./topic.js";
import { abortable, sleep } from "./timers.js";
import { HttpTransport } from "./transport/http.js";
export async function connect(options) {
    const client = new Client(options);
    await client.ready();
    return client;
}
export class Client {
    #link;
    #http;
    #publisher;
    #subscriptions = new Set();
    #started;
    #closing;
    constructor(options) {
        const { signal } = options;
        signal?.throwIfAborted();
        this.#link = new Link(settingsOf(options));
        this.#http = new HttpTransport(this.#link);
        this.#publisher = new Publisher(this.#link);
        this.#started = abortable(this.#link.start(), signal);
        this.#started.catch(() => undefined);
        signal?.addEventListener("abort", () => this.#link.close(), { once: true });
    }
    ready() {
        return this.#started;
    }
    get state() {
        return this.#link.state;
    }
    on(event, listener) {
        return this.#link.events.on(event, listener);
    }
    publish(topic, payload, options) {
        return this.#publisher.publish(topic, payload, options);
    }
    publishBatch(events, options = {}) {
        return this.#publisher.batch(events, options);
    }
    subscribe(topic, group, handler, options = {}) {
        return subscribe(this.#link, topic, group ?? undefined, handler, options, (made) => this.#track(made));
    }
    consume(topic, group, options = {}) {
        return consume(this.#link, topic, group ?? undefined, options, (made) => this.#track(made));
    }
    pull(topic, group, options = {}) {
        return pull(this.#http, nameOf(topic), group, options);
    }
    replay(topic, options = {}) {
        return replay(this.#http, nameOf(topic), options);
    }
    export(topic, options = {}) {
        return exportEvents(this.#http, nameOf(topic), options);
    }
    latestByKey(topic, keys, options = {}) {
        return latestByKey(this.#http, nameOf(topic), keys, options.signal);
    }
    latestEvents(topic, options = {}) {
        return latestEvents(this.#http, nameOf(topic), options);
    }
    stateAt(topic, key, at, options = {}) {
        return stateAt(this.#http, nameOf(topic), key, at, options.signal);
    }
    list(topic, options = {}) {
        return list(this.#http, nameOf(topic), options);
    }
    loadState(topic, options = {}) {
        return loadState(this.#link, this.#http, topic, options);
    }
    getCursor(topic, group, options = {}) {
        return getCursor(this.#http, nameOf(topic), group, options.signal);
    }
    seek(topic, group, to, options = {}) {
        return seek(this.#http, nameOf(topic), group, to, options.signal);
    }
    close() {
        this.#closing ??= this.#shutDown();
        return this.#closing;
    }
    [Symbol.asyncDispose]() {
        return this.close();
    }
    get transport() {
        return this.#http;
    }
    #track(subscription) {
        this.#subscriptions.add(subscription);
        void subscription.done.then(() => this.#subscriptions.delete(subscription));
    }
    async #shutDown() {
        const overdue = new AbortController();
        const timeout = sleep(this.#link.settings.closeTimeoutMs, overdue.signal).catch(() => undefined);
        await Promise.race([this.#drain(), timeout]);
        overdue.abort();
        this.#link.close();
        await this.#link.over;
    }
    async #drain() {
        try {
            await Promise.all([...this.#subscriptions].map((subscription) => subscription.unsubscribe()));
            this.#publisher.isClosing = true;
            while (this.#link.outbox.size > 0 && !this.#link.ended)
                await sleep(DRAIN_CHECK_MS);
        }
        catch (error) {
            this.#link.settings.logger.error?.("prombus: closing failed", { error: messageOf(error) });
        }
    }
}
const DRAIN_CHECK_MS = 2;
