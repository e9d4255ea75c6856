import { messageOf } from "../errors.js";
export class HandlerRunner {
    #running = 0;
    #onIdle = [];
    #membership;
    #handler;
    #parser;
    #settings;
    #client;
    constructor(membership, handler, parser, settings, client) {
        this.#membership = membership;
        this.#handler = handler;
        this.#parser = parser;
        this.#settings = settings;
        this.#client = client;
    }
    pump() {
        while (this.#running < this.#settings.concurrency) {
            const delivery = this.#membership.take();
            if (!delivery)
                return;
            this.#run(delivery);
        }
    }
    idle() {
        return new Promise((resolve) => {
            if (this.#running === 0)
                resolve();
            else
                this.#onIdle.push(resolve);
        });
    }
    #run(delivery) {
        this.#running += 1;
        let result;
        try {
            result = this.#parser.isIdentity ? this.#call(delivery) : this.#parseAndCall(delivery);
        }
        catch (error) {
            return this.#failed(delivery, error);
        }
        if (typeof result?.then !== "function")
            return this.#succeeded(delivery);
        result.then((value) => {
            if (value !== INVALID)
                this.#succeeded(delivery);
            else
                this.#finished(delivery);
            this.pump();
        }, (error) => {
            this.#failed(delivery, error);
            this.pump();
        });
    }
    #call(delivery) {
        const extract = this.#client.trace.extract;
        const { headers } = delivery.event;
        if (!extract || !headers)
            return this.#handler(delivery);
        return extract.call(this.#client.trace, headers, () => this.#handler(delivery));
    }
    async #parseAndCall(delivery) {
        const parsed = await this.#parser.parse(delivery);
        return parsed ? this.#call(parsed) : INVALID;
    }
    #succeeded(delivery) {
        if (!this.#settings.manualAck)
            delivery.ack();
        this.#finished(delivery);
    }
    #failed(delivery, error) {
        const { topic, id } = delivery.event;
        this.#client.logger.warn?.("prombus: a handler failed", { topic, id, attempt: delivery.attempt, error });
        delivery.nack(messageOf(error));
        this.#finished(delivery);
    }
    #finished(delivery) {
        this.#running -= 1;
        this.#membership.finished(delivery);
        if (this.#running === 0)
            for (const idle of this.#onIdle.splice(0))
                idle();
    }
}
const INVALID = Symbol("invalid");
