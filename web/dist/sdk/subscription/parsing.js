import { issuesText } from "../topic.js";
export class PayloadParser {
    #schema;
    #onInvalid;
    constructor(schema, onInvalid) {
        this.#schema = schema;
        this.#onInvalid = onInvalid;
    }
    get isIdentity() {
        return this.#schema === undefined;
    }
    async parse(delivery) {
        if (!this.#schema)
            return delivery;
        const result = await this.#schema["~standard"].validate(delivery.event.payload);
        if (!result.issues) {
            delivery.event.payload = result.value;
            return delivery;
        }
        if (this.#onInvalid)
            await this.#onInvalid(delivery, result.issues);
        else
            delivery.nack(`invalid payload: ${issuesText(result.issues)}`);
        return undefined;
    }
}
