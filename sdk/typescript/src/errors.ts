/** Errors as classes, one for each code. Everything that this package throws by itself is a {@link PrombusError}. */

import { RETRYABLE, type ReasonCode } from "./codes.js";

/** What an error carries beside its code and message. */
export interface ErrorDetails {
  /** When to come again, where the server says so. */
  retryAfterMs?: number | undefined;
  /** With `seq_mismatch`: the position that the server found. */
  actual?: number | undefined;
  /** What caused it. */
  cause?: unknown;
}

/** The base of all errors of this package. */
export class PrombusError<C extends string = ReasonCode | (string & {})> extends Error {
  /** The word to branch on. */
  readonly code: C;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** When to come again, where the server says so. */
  readonly retryAfterMs: number | undefined;
  /** With `seq_mismatch`: the position that the server found. */
  readonly actual: number | undefined;

  constructor(code: C, message: string, details: ErrorDetails = {}) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.name = errorName(code);
    this.code = code;
    this.retryable = RETRYABLE.has(code);
    this.retryAfterMs = details.retryAfterMs;
    this.actual = details.actual;
  }
}

export class BadJsonError extends PrombusError<"bad_json"> {}
export class BadFrameError extends PrombusError<"bad_frame"> {}
export class UnknownOpError extends PrombusError<"unknown_op"> {}
export class BadTopicError extends PrombusError<"bad_topic"> {}
export class BadGroupError extends PrombusError<"bad_group"> {}
export class UnauthorizedError extends PrombusError<"unauthorized"> {}
export class BadTokenError extends PrombusError<"bad_token"> {}
export class TokenExpiredError extends PrombusError<"token_expired"> {}
export class ForbiddenError extends PrombusError<"forbidden"> {}
export class RateLimitedError extends PrombusError<"rate_limited"> {}
export class TooLargeError extends PrombusError<"too_large"> {}
export class AlreadySubscribedError extends PrombusError<"already_subscribed"> {}
export class NotSubscribedError extends PrombusError<"not_subscribed"> {}
export class UnknownIdError extends PrombusError<"unknown_id"> {}
export class LeaseLostError extends PrombusError<"lease_lost"> {}
export class IdConflictError extends PrombusError<"id_conflict"> {}
export class GroupMismatchError extends PrombusError<"group_mismatch"> {}
export class SeqMismatchError extends PrombusError<"seq_mismatch"> {}
export class UnknownTopicError extends PrombusError<"unknown_topic"> {}
export class SchemaInvalidError extends PrombusError<"schema_invalid"> {}
export class PublishFailedError extends PrombusError<"publish_failed"> {}
export class AckFailedError extends PrombusError<"ack_failed"> {}
export class ShuttingDownError extends PrombusError<"shutting_down"> {}
export class UnknownGroupError extends PrombusError<"unknown_group"> {}
export class UnknownKeyError extends PrombusError<"unknown_key"> {}
export class DeletedKeyError extends PrombusError<"deleted_key"> {}
export class HistoryGoneError extends PrombusError<"history_gone"> {}
export class NotFoundError extends PrombusError<"not_found"> {}
export class MethodNotAllowedError extends PrombusError<"method_not_allowed"> {}
export class TimeoutError extends PrombusError<"timeout"> {}
export class ReadFailedError extends PrombusError<"read_failed"> {}
export class UnreachableError extends PrombusError<"unreachable"> {}
export class ProtocolError extends PrombusError<"protocol_error"> {}
export class NoTokenError extends PrombusError<"no_token"> {}
export class GaveUpError extends PrombusError<"gave_up"> {}
export class ClosedError extends PrombusError<"closed"> {}
export class UnknownOutcomeError extends PrombusError<"unknown_outcome"> {}
export class ConnectionLostError extends PrombusError<"connection_lost"> {}
export class QueueFullError extends PrombusError<"queue_full"> {}
export class HookFailedError extends PrombusError<"hook_failed"> {}
export class BadOptionError extends PrombusError<"bad_option"> {}

type ErrorClass = new (code: never, message: string, details?: ErrorDetails) => PrombusError;

const CLASSES: Record<ReasonCode, ErrorClass> = {
  bad_json: BadJsonError,
  bad_frame: BadFrameError,
  unknown_op: UnknownOpError,
  bad_topic: BadTopicError,
  bad_group: BadGroupError,
  unauthorized: UnauthorizedError,
  bad_token: BadTokenError,
  token_expired: TokenExpiredError,
  forbidden: ForbiddenError,
  rate_limited: RateLimitedError,
  too_large: TooLargeError,
  already_subscribed: AlreadySubscribedError,
  not_subscribed: NotSubscribedError,
  unknown_id: UnknownIdError,
  lease_lost: LeaseLostError,
  id_conflict: IdConflictError,
  group_mismatch: GroupMismatchError,
  seq_mismatch: SeqMismatchError,
  unknown_topic: UnknownTopicError,
  schema_invalid: SchemaInvalidError,
  publish_failed: PublishFailedError,
  ack_failed: AckFailedError,
  shutting_down: ShuttingDownError,
  unknown_group: UnknownGroupError,
  unknown_key: UnknownKeyError,
  deleted_key: DeletedKeyError,
  history_gone: HistoryGoneError,
  not_found: NotFoundError,
  method_not_allowed: MethodNotAllowedError,
  timeout: TimeoutError,
  read_failed: ReadFailedError,
  unreachable: UnreachableError,
  protocol_error: ProtocolError,
  no_token: NoTokenError,
  gave_up: GaveUpError,
  closed: ClosedError,
  unknown_outcome: UnknownOutcomeError,
  connection_lost: ConnectionLostError,
  queue_full: QueueFullError,
  hook_failed: HookFailedError,
  bad_option: BadOptionError,
};

/** The error for a code; the base class for a code that this version does not know. */
export function errorFor(code: string, message: string, details?: ErrorDetails): PrombusError {
  const known = Object.hasOwn(CLASSES, code) ? CLASSES[code as ReasonCode] : undefined;
  return known ? new known(code as never, message, details) : new PrombusError(code, message, details);
}

/** The error of a client that was closed on purpose. */
export function closedError(): ClosedError {
  return new ClosedError("closed", "the client is closed");
}

/** The text of anything that was thrown, for NACK reasons and logs. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  try {
    return String(thrown);
  } catch {
    return "an error without a message";
  }
}

function errorName(code: string): string {
  return code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase()) + (code.endsWith("error") ? "" : "Error");
}
