/** Ids for publishes that may have to be sent twice. */

/**
 * Makes ids that no other client makes: the time, 96 random bits for the client and a number for the event. They begin
 * with the time because a server that keeps ids in order then knows where an id would be.
 */
export class IdGenerator {
  readonly #client: string;
  #next = 0;
  #lastMs = 0;
  #prefix = "";

  constructor(random: Uint8Array = crypto.getRandomValues(new Uint8Array(12))) {
    this.#client = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  generate(nowMs: number): string {
    if (nowMs !== this.#lastMs) {
      this.#lastMs = nowMs;
      this.#prefix = `${nowMs.toString(16).padStart(11, "0")}-${this.#client}-`;
    }
    this.#next += 1;
    return this.#prefix + this.#next.toString(16);
  }
}
