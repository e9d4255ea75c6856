export class Deque {
    #items = [];
    #head = 0;
    get length() {
        return this.#items.length - this.#head;
    }
    push(item) {
        this.#items.push(item);
    }
    peek() {
        return this.#items[this.#head];
    }
    shift() {
        if (this.#head === this.#items.length)
            return undefined;
        const item = this.#items[this.#head];
        this.#items[this.#head] = undefined;
        this.#head += 1;
        if (this.#head === this.#items.length) {
            this.#items = [];
            this.#head = 0;
        }
        else if (this.#head >= 1024 && this.#head * 2 >= this.#items.length) {
            this.#items = this.#items.slice(this.#head);
            this.#head = 0;
        }
        return item;
    }
    prepend(items) {
        if (items.length > 0)
            this.#replace([...items, ...this]);
    }
    retain(test) {
        this.#replace([...this].filter(test));
    }
    drain() {
        const all = [...this];
        this.#replace([]);
        return all;
    }
    *[Symbol.iterator]() {
        for (let at = this.#head; at < this.#items.length; at += 1)
            yield this.#items[at];
    }
    #replace(items) {
        this.#items = items;
        this.#head = 0;
    }
}
