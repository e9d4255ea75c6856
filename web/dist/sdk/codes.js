export const RETRYABLE = new Set([
    "rate_limited",
    "publish_failed",
    "ack_failed",
    "read_failed",
    "shutting_down",
    "timeout",
    "unreachable",
    "unknown_outcome",
    "connection_lost",
    "queue_full",
]);
