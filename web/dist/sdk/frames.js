import { errorFor } from "./errors.js";
export function errorOf(frame) {
    return errorFor(frame.code, frame.msg, { retryAfterMs: frame.retry_after_ms, actual: frame.actual });
}
export function frame(op, fields) {
    return JSON.stringify({ op, ...fields });
}
