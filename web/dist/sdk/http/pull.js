import { stepEvents, stepRecords } from "../publish/encode.js";
import { contextOf } from "../record.js";
import { settle } from "./groups.js";
export class PulledDelivery {
    event;
    #http;
    #group;
    #ctx;
    constructor(http, group, event, ctx) {
        this.event = event;
        this.#http = http;
        this.#group = group;
        this.#ctx = ctx;
    }
    get payload() {
        return this.event.payload;
    }
    get context() {
        return contextOf(this.event, this.#ctx.attempt, this.#ctx.maxAttempts ?? 5);
    }
    async ack() {
        await settle(this.#http, "/ack", this.#body());
    }
    async nack(reason, delayMs) {
        await settle(this.#http, "/nack", { ...this.#body(), reason, delay_ms: delayMs });
    }
    async extend(extendMs = this.#ctx.ack_deadline_ms) {
        await settle(this.#http, "/modack", { ...this.#body(), extend_ms: extendMs });
    }
    async ackAndPublish(events) {
        const publish = stepEvents(events, undefined);
        const { published } = await settle(this.#http, "/ack", { ...this.#body(), publish });
        return stepRecords(publish, published);
    }
    #body() {
        return { topic: this.event.topic, group: this.#group, id: this.event.id };
    }
}
export async function pull(http, topic, group, options) {
    const { waitMs, signal, ...rest } = options;
    const body = { topic, group, ...rest, wait_ms: waitMs };
    const { events } = await http.json({ method: "POST", path: "/pull", body, signal });
    return events.map(({ event, ctx }) => new PulledDelivery(http, group, event, ctx));
}
