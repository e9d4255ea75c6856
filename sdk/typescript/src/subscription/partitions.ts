/** The partitions of a subscription: which ones it has, what waits of each, and the hooks between one holder and the next. */

import { Deque } from "../deque.js";
import type { Delivery } from "./delivery.js";

/** What a subscriber does when partitions come and go. Where one throws, the subscription ends with `hook_failed`. */
export interface PartitionHooks {
  /** Partitions come to this subscription, and their events after this: the place to load what is kept for them. */
  onAssigned?: (partitions: readonly number[], topic: string) => unknown;
  /**
   * Partitions go to another member after this: the place to store what is kept for them. Called when their handlers are
   * done. After a broken connection others may have them already.
   */
  onRevoked?: (partitions: readonly number[], topic: string) => unknown;
}

/** What the deliveries of a subscription wait in. */
export interface DeliveryQueue {
  readonly length: number;
  push(delivery: Delivery): void;
  shift(): Delivery | undefined;
  drain(): Delivery[];
}

/** What partitions need of their subscription. */
export interface PartitionHost {
  /** Deliveries can be taken that could not before. */
  onReady(): void;
  /** A delivery that nobody took is given up: the next member gets it. */
  onDropped(delivery: Delivery): void;
  /** There is something for {@link Partitions.takeConfirmed}. */
  onConfirmed(): void;
  onHookFailed(thrown: unknown): void;
}

/** The lane of events that do not say their partition: they were published before their topic had any, or had fewer. */
const UNNUMBERED = -1;

/** The partitions of one topic. */
class Held {
  /** What the server has assigned. */
  readonly assigned = new Set<number>();
  /** What the hooks were told of. */
  readonly told = new Set<number>();
  /** Of these, what is lost since, perhaps to come back. */
  readonly lost = new Set<number>();
  /** What the server waits for. */
  readonly toConfirm = new Set<number>();
  /** Of what was told, where `onAssigned` is done. */
  readonly ready = new Set<number>();
  /** What waits, in the order in which the partitions have their turn. */
  readonly lanes = new Map<number, Deque<Delivery>>();
  /** Deliveries that are being handled. */
  readonly busy = new Map<number, number>();

  laneOf({ event: { partition } }: Delivery): number {
    return partition !== undefined && (this.assigned.has(partition) || this.told.has(partition)) ? partition : UNNUMBERED;
  }

  isOpen(lane: number): boolean {
    return !this.busy.has(lane) && (lane === UNNUMBERED ? this.ready.size > 0 : this.ready.has(lane));
  }
}

export class Partitions implements DeliveryQueue {
  readonly #topics = new Map<string, Held>();
  readonly #lanes = new Map<Delivery, number>();
  #confirmed: { topic: string; partitions: number[] }[] = [];
  #length = 0;
  #onFinished: (() => void)[] = [];
  #turn: Promise<void> | undefined;
  readonly #hooks: PartitionHooks;
  readonly #host: PartitionHost;

  constructor(hooks: PartitionHooks, host: PartitionHost) {
    this.#hooks = hooks;
    this.#host = host;
  }

  get length(): number {
    return this.#length;
  }

  push(delivery: Delivery): void {
    const held = this.#of(delivery.event.topic);
    const lane = held.laneOf(delivery);
    const queue = held.lanes.get(lane) ?? new Deque<Delivery>();
    held.lanes.set(lane, queue);
    queue.push(delivery);
    this.#length += 1;
  }

  /** The next delivery of a partition that is ready and of which nothing is being handled. */
  shift(): Delivery | undefined {
    for (const held of this.#topics.values()) {
      for (const [lane, queue] of held.lanes) {
        const delivery = held.isOpen(lane) ? queue.shift() : undefined;
        if (!delivery) continue;
        // The others have their turn first.
        held.lanes.delete(lane);
        if (queue.length > 0) held.lanes.set(lane, queue);
        held.busy.set(lane, (held.busy.get(lane) ?? 0) + 1);
        this.#lanes.set(delivery, lane);
        this.#length -= 1;
        return delivery;
      }
    }
    return undefined;
  }

  /** A delivery was handled: the next one of its partition can be. */
  finished(delivery: Delivery): void {
    const lane = this.#lanes.get(delivery);
    if (lane === undefined) return;
    this.#lanes.delete(delivery);
    const { busy } = this.#of(delivery.event.topic);
    const left = (busy.get(lane) ?? 1) - 1;
    if (left > 0) busy.set(lane, left);
    else busy.delete(lane);
    for (const tell of this.#onFinished.splice(0)) tell();
  }

  drain(): Delivery[] {
    this.#length = 0;
    const all: Delivery[] = [];
    for (const { lanes } of this.#topics.values()) {
      for (const queue of lanes.values()) all.push(...queue.drain());
      lanes.clear();
    }
    return all;
  }

  assign(topic: string, partitions: readonly number[]): void {
    const { assigned } = this.#of(topic);
    for (const partition of partitions) assigned.add(partition);
    void this.settle();
  }

  /** The server takes partitions back. What the hooks never knew of is confirmed at once. */
  revoke(topic: string, partitions: readonly number[]): void {
    const held = this.#of(topic);
    const unknown: number[] = [];
    for (const partition of partitions) {
      held.assigned.delete(partition);
      held.ready.delete(partition);
      if (!held.told.has(partition)) unknown.push(partition);
      else held.toConfirm.add(partition) && held.lost.add(partition);
    }
    // Events that do not say their partition may be of these; the others of them come again when their leases run out.
    for (const lane of [...partitions, UNNUMBERED]) this.#drop(held, lane);
    this.#confirm(topic, unknown);
    void this.settle();
  }

  /** The connection is gone, or the subscription ends, and everything with it. Resolves when the hooks know. */
  loseAll(): Promise<void> {
    this.#confirmed = [];
    for (const { assigned, toConfirm, ready, told, lost } of this.#topics.values()) {
      for (const set of [assigned, toConfirm, ready]) set.clear();
      for (const partition of told) lost.add(partition);
    }
    return this.settle();
  }

  /** What the server may give to others by now; their events' acknowledgements must be on their way. */
  takeConfirmed(): { topic: string; partitions: number[] }[] {
    return this.#confirmed.splice(0);
  }

  /** Calls the hooks until they know all that has changed, one at a time. */
  settle(): Promise<void> {
    this.#turn ??= this.#callHooks();
    return this.#turn;
  }

  async #callHooks(): Promise<void> {
    // What comes in one message is one change.
    await undefined;
    try {
      for (let isChanged = true; isChanged; ) {
        isChanged = false;
        for (const [topic, held] of this.#topics) {
          if (held.lost.size > 0) isChanged = true;
          if (held.lost.size > 0) await this.#callRevoked(topic, held);
          const assigned = [...held.assigned].filter((partition) => !held.told.has(partition)).sort(ascending);
          if (assigned.length > 0) isChanged = true;
          if (assigned.length > 0) await this.#callAssigned(topic, held, assigned);
        }
      }
    } catch (thrown) {
      this.#host.onHookFailed(thrown);
    }
    // In the same task as the last look, so that no change is missed.
    this.#turn = undefined;
  }

  async #callAssigned(topic: string, { assigned, told, lost, ready }: Held, fresh: number[]): Promise<void> {
    for (const partition of fresh) told.add(partition);
    await this.#hooks.onAssigned?.(fresh, topic);
    for (const partition of fresh) if (assigned.has(partition) && !lost.has(partition)) ready.add(partition);
    this.#host.onReady();
  }

  async #callRevoked(topic: string, { lost, told, busy, toConfirm }: Held): Promise<void> {
    const isBusy = (partition: number): boolean => busy.has(partition);
    while (isBusy(UNNUMBERED) || [...lost].some(isBusy)) await new Promise<void>((tell) => this.#onFinished.push(tell));
    const revoked = [...lost].sort(ascending);
    lost.clear();
    // Before the hook, so that another break meanwhile does not call it again.
    for (const partition of revoked) told.delete(partition);
    await this.#hooks.onRevoked?.(revoked, topic);
    this.#confirm(topic, revoked.filter((partition) => toConfirm.delete(partition)));
  }

  #confirm(topic: string, partitions: number[]): void {
    if (partitions.length === 0) return;
    this.#confirmed.push({ topic, partitions });
    this.#host.onConfirmed();
  }

  #drop({ lanes }: Held, lane: number): void {
    const dropped = lanes.get(lane)?.drain() ?? [];
    lanes.delete(lane);
    this.#length -= dropped.length;
    for (const delivery of dropped) this.#host.onDropped(delivery);
  }

  #of(topic: string): Held {
    const held = this.#topics.get(topic) ?? new Held();
    this.#topics.set(topic, held);
    return held;
  }
}

function ascending(one: number, other: number): number {
  return one - other;
}
