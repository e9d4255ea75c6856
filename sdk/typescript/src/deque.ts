/** A queue on an array that gives its head back in constant time. */
export class Deque<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head] = undefined;
    this.#head += 1;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head >= 1024 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Puts items before all others, in their order. */
  prepend(items: readonly T[]): void {
    if (items.length > 0) this.#replace([...items, ...this]);
  }

  /** Keeps what the test accepts. */
  retain(test: (item: T) => boolean): void {
    this.#replace([...this].filter(test));
  }

  /** Takes everything out. */
  drain(): T[] {
    const all = [...this];
    this.#replace([]);
    return all;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let at = this.#head; at < this.#items.length; at += 1) yield this.#items[at] as T;
  }

  #replace(items: T[]): void {
    this.#items = items;
    this.#head = 0;
  }
}
