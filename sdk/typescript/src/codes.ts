/** Reason codes: the words to branch on, those of the server and those of this client. */

/** Codes that the server sends. A code, once published, keeps its meaning. */
export type ServerCode =
  | "bad_json"
  | "bad_frame"
  | "unknown_op"
  | "bad_topic"
  | "bad_group"
  | "unauthorized"
  | "bad_token"
  | "token_expired"
  | "forbidden"
  | "rate_limited"
  | "too_large"
  | "already_subscribed"
  | "not_subscribed"
  | "unknown_id"
  | "lease_lost"
  | "id_conflict"
  | "group_mismatch"
  | "seq_mismatch"
  | "unknown_topic"
  | "schema_invalid"
  | "publish_failed"
  | "ack_failed"
  | "shutting_down"
  | "unknown_group"
  | "unknown_key"
  | "deleted_key"
  | "history_gone"
  | "not_found"
  | "method_not_allowed"
  | "timeout"
  | "read_failed";

/** Codes that this client makes itself. */
export type ClientCode =
  /** The server cannot be reached, or the connection broke. */
  | "unreachable"
  /** The other side does not speak the protocol. */
  | "protocol_error"
  /** The token provider gave no token. */
  | "no_token"
  /** As many attempts to connect failed as `reconnect.maxAttempts` allows. */
  | "gave_up"
  /** The client, or the subscription, is closed. */
  | "closed"
  /** The connection broke before the reply, and sending again would not be safe. */
  | "unknown_outcome"
  /** The connection that the event was delivered on is gone, and the lease with it. */
  | "connection_lost"
  /** More publishes wait than `maxQueued` or `maxQueuedBytes` allow. */
  | "queue_full"
  /** A hook of a partitioned subscription threw, and the subscription ended. */
  | "hook_failed"
  /** An option has a value that cannot be used. */
  | "bad_option";

/** Every code that {@link PrombusError.code} can have; a newer server may send others. */
export type ReasonCode = ServerCode | ClientCode;

/** Codes of failures that may pass by themselves. */
export const RETRYABLE: ReadonlySet<string> = new Set<ReasonCode>([
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
