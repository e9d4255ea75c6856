export class Listeners {
    #byName = new Map();
    #onThrow;
    constructor(onThrow) {
        this.#onThrow = onThrow;
    }
    on(name, listener) {
        const listeners = this.#byName.get(name) ?? new Set();
        this.#byName.set(name, listeners);
        listeners.add(listener);
        return () => void listeners.delete(listener);
    }
    emit(name, event) {
        for (const listener of this.#byName.get(name) ?? []) {
            try {
                listener(event);
            }
            catch (error) {
                this.#onThrow(error);
            }
        }
    }
}
