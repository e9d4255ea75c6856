/** Payloads on their way to a handler: parsed with the topic's schema, or rejected. */

import { issuesText, type Issue, type SchemaResult, type StandardSchema } from "../topic.js";
import type { Delivery } from "./delivery.js";

type OnInvalid = (delivery: Delivery<unknown>, issues: readonly Issue[]) => void | Promise<void>;

export class PayloadParser<T> {
  readonly #schema: StandardSchema<unknown, T> | undefined;
  readonly #onInvalid: OnInvalid | undefined;

  constructor(schema: StandardSchema<unknown, T> | undefined, onInvalid: OnInvalid | undefined) {
    this.#schema = schema;
    this.#onInvalid = onInvalid;
  }

  /** Whether there is nothing to do. */
  get isIdentity(): boolean {
    return this.#schema === undefined;
  }

  /** The delivery with its parsed payload; undefined where it was not valid and is taken care of. */
  async parse(delivery: Delivery<unknown>): Promise<Delivery<T> | undefined> {
    if (!this.#schema) return delivery as Delivery<T>;
    const result: SchemaResult<T> = await this.#schema["~standard"].validate(delivery.event.payload);
    if (!result.issues) {
      delivery.event.payload = result.value;
      return delivery as Delivery<T>;
    }
    if (this.#onInvalid) await this.#onInvalid(delivery, result.issues);
    else delivery.nack(`invalid payload: ${issuesText(result.issues)}`);
    return undefined;
  }
}
