import { closedError } from "../errors.js";
import { IdGenerator } from "../ids.js";
import { checkPayload, nameOf, schemaOf } from "../topic.js";
import { encodePayload, PublishEncoder, storedRecord, wireOptions } from "./encode.js";
export class Publisher {
    #encoder = new PublishEncoder();
    #ids = new IdGenerator();
    isClosing = false;
    #link;
    constructor(link) {
        this.#link = link;
    }
    publish(topic, payload, options) {
        const name = nameOf(topic);
        const schema = schemaOf(topic);
        if (!schema)
            return this.#send(name, payload, options);
        const checked = new Promise((resolve) => resolve(checkPayload(schema, name, payload)));
        return checked.then(() => this.#send(name, payload, options));
    }
    async batch(events, options) {
        const settled = await Promise.allSettled(events.map(async ({ topic, payload, opts }) => this.#send(topic, payload, { ...options, ...opts })));
        options.signal?.throwIfAborted();
        return settled.map((result) => result.status === "fulfilled" ? { ok: true, record: result.value } : { ok: false, error: result.reason });
    }
    #send(topic, payload, options) {
        return new Promise((resolve, reject) => {
            if (this.isClosing)
                return reject(closedError());
            if (options?.signal?.aborted)
                return reject(options.signal.reason);
            const { idempotent, trace, waitForRateLimit } = this.#link.settings;
            const givenId = options?.id;
            const id = givenId ?? (idempotent ? this.#ids.generate(Date.now()) : undefined);
            const wire = options || trace.inject ? this.#wire(options ?? {}, id) : undefined;
            const signal = options?.signal;
            const onAbort = () => {
                withdraw?.();
                reject(signal?.reason);
            };
            const forget = () => signal?.removeEventListener("abort", onAbort);
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
    #wire(options, id) {
        const traced = this.#link.settings.trace.inject?.();
        return wireOptions(options, id, traced ? { ...traced, ...options.headers } : options.headers);
    }
}
