/** What a subscriber may say, and what of it goes to the server. */

import type { Issue } from "../topic.js";
import { positive } from "../options.js";
import type { EventRecord, GroupOptions, WireFilter } from "../record.js";
import type { Delivery } from "./delivery.js";
import type { PartitionHooks } from "./partitions.js";

/** Options of a subscription. */
export interface SubscribeOptions<T = unknown> extends Omit<GroupOptions, "filter">, PartitionHooks {
  /** What the group wants to see; a function filters here, and what does not match is acknowledged unseen. */
  filter?: WireFilter | ((event: EventRecord<T>) => boolean);
  /** The handler acknowledges; its return means nothing. */
  manualAck?: boolean;
  /** How many handlers run at a time (1); of one partition, where `partitioned` is set, never more than one. */
  concurrency?: number;
  /** How long leases are extended at most, from the delivery on (10 min); 0 extends none. */
  maxExtensionMs?: number;
  /** Unsubscribes when aborted. */
  signal?: AbortSignal;
  /** Gets deliveries whose payload does not fit the topic's schema, in place of a NACK. It has to settle them. */
  onInvalid?: (delivery: Delivery<unknown>, issues: readonly Issue[]) => void | Promise<void>;
}

/** Options with all defaults filled in. */
export interface SubscriptionSettings {
  readonly wire: GroupOptions;
  readonly maxInFlight: number;
  readonly maxAttempts: number;
  readonly maxExtensionMs: number;
  readonly concurrency: number;
  readonly manualAck: boolean;
  readonly partitioned: boolean;
  readonly hooks: PartitionHooks;
}

/** Delivered and not settled, by default: the gateway's own default. */
const DEFAULT_MAX_IN_FLIGHT = 100;
const DEFAULT_MAX_ATTEMPTS = 5;
const DEFAULT_MAX_EXTENSION_MS = 600_000;

export function subscriptionSettings<T>(options: SubscribeOptions<T>): SubscriptionSettings {
  const { from, ts, afterId, seq, batchSize, ackTimeoutMs, maxAttempts, topics, ordering, partitioned, upcast, onAssigned, onRevoked } = options;
  const maxInFlight = positive("maxInFlight", options.maxInFlight, DEFAULT_MAX_IN_FLIGHT);
  const filter = typeof options.filter === "function" ? undefined : options.filter;
  const wire = { from, ts, afterId, seq, batchSize, maxInFlight, ackTimeoutMs, maxAttempts, filter, topics, ordering, partitioned, upcast };
  return {
    wire: wire as GroupOptions,
    maxInFlight,
    maxAttempts: maxAttempts ?? DEFAULT_MAX_ATTEMPTS,
    maxExtensionMs: options.maxExtensionMs ?? DEFAULT_MAX_EXTENSION_MS,
    concurrency: positive("concurrency", options.concurrency, 1),
    manualAck: options.manualAck ?? false,
    partitioned: partitioned ?? false,
    hooks: { ...(onAssigned && { onAssigned }), ...(onRevoked && { onRevoked }) },
  };
}
