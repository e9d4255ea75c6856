/** What a system does in the bench, and how publishing is kept at so many in flight. */

export interface System {
  readonly name: string;
  /** Publishes `count` payloads with so many in flight, each acknowledged. */
  publish(topic: string, payloads: readonly object[], inFlight: number): Promise<void>;
  /** Consumes them through a group, acknowledging each; gives what was seen. Ends when all are acknowledged. */
  consume(topic: string, count: number): Promise<number>;
  stop(): Promise<void>;
}

/** Keeps so many calls under way until all are done. */
export async function withInFlight<T>(items: readonly T[], inFlight: number, call: (item: T) => Promise<unknown>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await call(item);
  };
  await Promise.all(Array.from({ length: inFlight }, work));
}
