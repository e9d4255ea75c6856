import { positive } from "../options.js";
const DEFAULT_MAX_IN_FLIGHT = 100;
const DEFAULT_MAX_ATTEMPTS = 5;
const DEFAULT_MAX_EXTENSION_MS = 600_000;
export function subscriptionSettings(options) {
    const { from, ts, afterId, seq, batchSize, ackTimeoutMs, maxAttempts, topics, ordering, partitioned, upcast, onAssigned, onRevoked } = options;
    const maxInFlight = positive("maxInFlight", options.maxInFlight, DEFAULT_MAX_IN_FLIGHT);
    const filter = typeof options.filter === "function" ? undefined : options.filter;
    const wire = { from, ts, afterId, seq, batchSize, maxInFlight, ackTimeoutMs, maxAttempts, filter, topics, ordering, partitioned, upcast };
    return {
        wire: wire,
        maxInFlight,
        maxAttempts: maxAttempts ?? DEFAULT_MAX_ATTEMPTS,
        maxExtensionMs: options.maxExtensionMs ?? DEFAULT_MAX_EXTENSION_MS,
        concurrency: positive("concurrency", options.concurrency, 1),
        manualAck: options.manualAck ?? false,
        partitioned: partitioned ?? false,
        hooks: { ...(onAssigned && { onAssigned }), ...(onRevoked && { onRevoked }) },
    };
}
