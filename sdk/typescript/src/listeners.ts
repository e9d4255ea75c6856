/** Listeners by the name of their event. */
export class Listeners<Events extends object> {
  readonly #byName = new Map<keyof Events, Set<(event: never) => void>>();

  readonly #onThrow: (error: unknown) => void;

  constructor(onThrow: (error: unknown) => void) {
    this.#onThrow = onThrow;
  }

  /** Adds a listener; the result removes it. */
  on<K extends keyof Events>(name: K, listener: (event: Events[K]) => void): () => void {
    const listeners = this.#byName.get(name) ?? new Set();
    this.#byName.set(name, listeners);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** Calls the listeners; one that throws does not keep the others from being called. */
  emit<K extends keyof Events>(name: K, event: Events[K]): void {
    for (const listener of this.#byName.get(name) ?? []) {
      try {
        (listener as (event: Events[K]) => void)(event);
      } catch (error) {
        this.#onThrow(error);
      }
    }
  }
}
