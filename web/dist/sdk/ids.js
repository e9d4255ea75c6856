export class IdGenerator {
    #client;
    #next = 0;
    #lastMs = 0;
    #prefix = "";
    constructor(random = crypto.getRandomValues(new Uint8Array(12))) {
        this.#client = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
    }
    generate(nowMs) {
        if (nowMs !== this.#lastMs) {
            this.#lastMs = nowMs;
            this.#prefix = `${nowMs.toString(16).padStart(11, "0")}-${this.#client}-`;
        }
        this.#next += 1;
        return this.#prefix + this.#next.toString(16);
    }
}
