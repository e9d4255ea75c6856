import { Deque } from "../deque.js";
export class DeliveryIterator {
    #state;
    #isOver = false;
    #error;
    #inHand;
    #waiters = new Deque();
    #tellDone = () => undefined;
    #open;
    #parser;
    #signal;
    constructor(open, parser, signal) {
        this.#open = open;
        this.#parser = parser;
        this.#signal = signal;
    }
    get subscription() {
        return this.#state?.subscription;
    }
    async next() {
        this.#signal?.throwIfAborted();
        const { membership, opened } = this.#start();
        await opened;
        for (;;) {
            if (this.#inHand)
                membership.finished(this.#inHand);
            const delivery = membership.take();
            this.#inHand = delivery;
            if (delivery) {
                const parsed = await this.#parser.parse(delivery);
                if (parsed)
                    return { done: false, value: parsed };
                continue;
            }
            this.#signal?.throwIfAborted();
            if (this.#error !== undefined)
                throw this.#error;
            if (this.#isOver)
                return { done: true, value: undefined };
            await new Promise((wake) => this.#waiters.push({ wake }));
        }
    }
    async return() {
        if (this.#inHand)
            this.#state?.membership.finished(this.#inHand);
        await this.#state?.subscription.unsubscribe();
        this.#end(undefined);
        return { done: true, value: undefined };
    }
    [Symbol.asyncIterator]() {
        return this;
    }
    [Symbol.asyncDispose]() {
        return this.return().then(() => undefined);
    }
    onDone(tell) {
        this.#tellDone = tell;
    }
    #start() {
        if (this.#state)
            return this.#state;
        this.#state = this.#open({
            onDeliveries: () => this.#wake(),
            onHookFailed: () => void this.#state?.subscription.unsubscribe(),
            onOver: (error) => {
                this.#end(error);
                this.#tellDone(error);
            },
        });
        this.#signal?.addEventListener("abort", () => this.#wake(), { once: true });
        return this.#state;
    }
    #end(error) {
        if (this.#isOver)
            return;
        this.#isOver = true;
        if (error && error.code !== "closed")
            this.#error = error;
        this.#wake();
    }
    #wake() {
        for (const waiter of this.#waiters.drain())
            waiter.wake();
    }
}
