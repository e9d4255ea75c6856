import { messageOf } from "../errors.js";
import { nameOf, schemaOf } from "../topic.js";
import { abortable } from "../timers.js";
import { HandlerRunner } from "./handlers.js";
import { DeliveryIterator } from "./iterator.js";
import { Membership } from "./membership.js";
import { subscriptionSettings } from "./options.js";
import { PayloadParser } from "./parsing.js";
export class Subscription {
    done;
    #stopping;
    #membership;
    #handlersIdle;
    constructor(membership, handlersIdle, done) {
        this.done = done;
        this.#membership = membership;
        this.#handlersIdle = handlersIdle;
    }
    get topic() {
        return this.#membership.topic;
    }
    get group() {
        return this.#membership.group;
    }
    pause() {
        this.#membership.setPaused(true);
    }
    resume() {
        this.#membership.setPaused(false);
    }
    unsubscribe() {
        this.#stopping ??= this.#stop();
        return this.#stopping;
    }
    [Symbol.asyncDispose]() {
        return this.unsubscribe();
    }
    async #stop() {
        this.#membership.stop();
        await this.#handlersIdle();
        await this.#membership.letGo();
        await this.#membership.leave();
    }
}
export async function subscribe(link, topic, group, handler, options, onMade) {
    options.signal?.throwIfAborted();
    const settings = subscriptionSettings(options);
    let onOver = () => undefined;
    const done = new Promise((resolve) => (onOver = resolve));
    const membership = new Membership(link, nameOf(topic), group, settings, functionFilter(options), {
        onDeliveries: () => runner.pump(),
        onHookFailed: () => void subscription.unsubscribe(),
        onOver: (error) => onOver(error),
    });
    const parser = new PayloadParser(schemaOf(topic), options.onInvalid);
    const runner = new HandlerRunner(membership, handler, parser, settings, link.settings);
    const subscription = new Subscription(membership, () => runner.idle(), done);
    onMade(subscription);
    await leaveOnAbort(membership.open(), subscription, options.signal, link);
    return subscription;
}
export function consume(link, topic, group, options, onMade) {
    const settings = subscriptionSettings(options);
    const iterator = new DeliveryIterator((listener) => {
        const membership = new Membership(link, nameOf(topic), group, settings, functionFilter(options), listener);
        const done = new Promise((resolve) => iterator.onDone(resolve));
        const subscription = new Subscription(membership, async () => undefined, done);
        onMade(subscription);
        const opened = leaveOnAbort(membership.open(), subscription, options.signal, link);
        return { membership, subscription, opened };
    }, new PayloadParser(schemaOf(topic), options.onInvalid), options.signal);
    return iterator;
}
function functionFilter(options) {
    return typeof options.filter === "function" ? options.filter : undefined;
}
async function leaveOnAbort(opened, subscription, signal, link) {
    const onAbort = () => {
        subscription.unsubscribe().catch((error) => link.settings.logger.error?.("prombus: unsubscribing failed", { error: messageOf(error) }));
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    void subscription.done.then(() => signal?.removeEventListener("abort", onAbort));
    await abortable(opened, signal);
}
