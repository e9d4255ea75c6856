import { RETRYABLE } from "./codes.js";
export class PrombusError extends Error {
    code;
    retryable;
    retryAfterMs;
    actual;
    constructor(code, message, details = {}) {
        super(message, "cause" in details ? { cause: details.cause } : undefined);
        this.name = errorName(code);
        this.code = code;
        this.retryable = RETRYABLE.has(code);
        this.retryAfterMs = details.retryAfterMs;
        this.actual = details.actual;
    }
}
export class BadJsonError extends PrombusError {
}
export class BadFrameError extends PrombusError {
}
export class UnknownOpError extends PrombusError {
}
export class BadTopicError extends PrombusError {
}
export class BadGroupError extends PrombusError {
}
export class UnauthorizedError extends PrombusError {
}
export class BadTokenError extends PrombusError {
}
export class TokenExpiredError extends PrombusError {
}
export class ForbiddenError extends PrombusError {
}
export class RateLimitedError extends PrombusError {
}
export class TooLargeError extends PrombusError {
}
export class AlreadySubscribedError extends PrombusError {
}
export class NotSubscribedError extends PrombusError {
}
export class UnknownIdError extends PrombusError {
}
export class LeaseLostError extends PrombusError {
}
export class IdConflictError extends PrombusError {
}
export class GroupMismatchError extends PrombusError {
}
export class SeqMismatchError extends PrombusError {
}
export class UnknownTopicError extends PrombusError {
}
export class SchemaInvalidError extends PrombusError {
}
export class PublishFailedError extends PrombusError {
}
export class AckFailedError extends PrombusError {
}
export class ShuttingDownError extends PrombusError {
}
export class UnknownGroupError extends PrombusError {
}
export class UnknownKeyError extends PrombusError {
}
export class DeletedKeyError extends PrombusError {
}
export class HistoryGoneError extends PrombusError {
}
export class NotFoundError extends PrombusError {
}
export class MethodNotAllowedError extends PrombusError {
}
export class TimeoutError extends PrombusError {
}
export class ReadFailedError extends PrombusError {
}
export class UnreachableError extends PrombusError {
}
export class ProtocolError extends PrombusError {
}
export class NoTokenError extends PrombusError {
}
export class GaveUpError extends PrombusError {
}
export class ClosedError extends PrombusError {
}
export class UnknownOutcomeError extends PrombusError {
}
export class ConnectionLostError extends PrombusError {
}
export class QueueFullError extends PrombusError {
}
export class HookFailedError extends PrombusError {
}
export class BadOptionError extends PrombusError {
}
const CLASSES = {
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
export function errorFor(code, message, details) {
    const known = Object.hasOwn(CLASSES, code) ? CLASSES[code] : undefined;
    return known ? new known(code, message, details) : new PrombusError(code, message, details);
}
export function closedError() {
    return new ClosedError("closed", "the client is closed");
}
export function messageOf(thrown) {
    if (thrown instanceof Error)
        return thrown.message || thrown.name;
    try {
        return String(thrown);
    }
    catch {
        return "an error without a message";
    }
}
function errorName(code) {
    return code.replace(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase()) + (code.endsWith("error") ? "" : "Error");
}
