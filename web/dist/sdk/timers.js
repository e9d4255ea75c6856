export function background(call, afterMs) {
    const timer = setTimeout(call, Math.min(afterMs, 0x7fffffff));
    timer.unref?.();
    return timer;
}
export function sleep(ms, signal) {
    return new Promise((resolve, reject) => {
        if (signal?.aborted)
            return reject(signal.reason);
        const onAbort = () => {
            clearTimeout(timer);
            reject(signal?.reason);
        };
        const timer = setTimeout(() => {
            signal?.removeEventListener("abort", onAbort);
            resolve();
        }, ms);
        signal?.addEventListener("abort", onAbort, { once: true });
    });
}
export function backoffMs(baseMs, capMs, attempt, chance) {
    const whole = Math.min(capMs, baseMs * 2 ** Math.min(attempt - 1, 30));
    return whole / 2 + (whole / 2) * chance;
}
export function abortable(promise, signal) {
    if (!signal)
        return promise;
    if (signal.aborted)
        return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
        const onAbort = () => reject(signal.reason);
        signal.addEventListener("abort", onAbort, { once: true });
        promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    });
}
