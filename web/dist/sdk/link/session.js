import { closedError, ProtocolError, TimeoutError, UnreachableError } from "../errors.js";
import { errorOf, frame } from "../frames.js";
import { background, backoffMs } from "../timers.js";
import { Socket } from "../transport/websocket.js";
import { askToken, refreshDelayMs } from "./token.js";
export const MAX_OPEN_REQUESTS = 4_096;
const REQUEST_PREFIX = "r";
const TOKEN_CODES = new Set(["bad_token", "unauthorized", "token_expired", "forbidden"]);
export function isAboutToken(error) {
    return TOKEN_CODES.has(error.code);
}
export class Session {
    #socket;
    #requests = new Map();
    #controls = [];
    #nextRequest = 0;
    #isOpen = false;
    #isOver = false;
    #hasReceived = true;
    #isProbing = false;
    #timers = new Set();
    #refreshFailures = 0;
    wasUseful = false;
    #host;
    #token;
    constructor(host, implementation, token) {
        this.#host = host;
        this.#token = token;
        const { settings } = host;
        const onTimeout = () => this.fail(new TimeoutError("timeout", `${settings.socketUrl} did not reply within ${settings.handshakeTimeoutMs} ms`));
        const handshake = this.#after(settings.handshakeTimeoutMs, onTimeout);
        try {
            this.#socket = new Socket(implementation, settings.socketUrl, {
                onOpen: () => this.#authenticate(() => this.#begin(handshake)),
                onText: (text) => this.#receive(text),
                onEnd: (reason) => this.#finish(new UnreachableError("unreachable", `${settings.socketUrl}: ${reason}`)),
            });
        }
        catch (error) {
            clearTimeout(handshake);
            throw error;
        }
    }
    get openRequests() {
        return this.#requests.size;
    }
    request(op, fields, request) {
        this.#nextRequest += 1;
        const corr = REQUEST_PREFIX + this.#nextRequest;
        this.#requests.set(corr, request);
        this.#controls.push(frame(op, { ...fields, corr }));
        this.#host.touch();
    }
    flush() {
        if (this.#controls.length > 0) {
            const controls = this.#controls;
            this.#controls = [];
            for (const message of messages(controls))
                this.#socket.send(message);
        }
        if (!this.#isOpen)
            return;
        const nowMs = Date.now();
        for (let message = this.#host.outbox.nextMessage(nowMs); message; message = this.#host.outbox.nextMessage(nowMs)) {
            this.#socket.send(message);
        }
        const resumesAtMs = this.#host.outbox.resumesAtMs;
        if (resumesAtMs > nowMs)
            this.#after(resumesAtMs - nowMs + 1, () => this.#host.touch());
    }
    fail(error) {
        this.#finish(error);
        this.#socket.end(error.message);
    }
    close() {
        this.fail(closedError());
    }
    #begin(handshake) {
        clearTimeout(handshake);
        this.#isOpen = true;
        this.#keepAlive();
        this.#scheduleRefresh();
        this.#host.onOpen();
        this.#host.touch();
    }
    #authenticate(onOk) {
        const fields = { token: this.#token?.token, batch: true };
        const err = (error) => this.fail(error);
        this.request("AUTH", fields, { ok: onOk, err, lost: () => undefined });
        this.flush();
    }
    #receive(text) {
        this.#hasReceived = true;
        let frames;
        try {
            frames = JSON.parse(text);
        }
        catch (cause) {
            return this.fail(new ProtocolError("protocol_error", "invalid JSON", { cause }));
        }
        const nowMs = Date.now();
        if (Array.isArray(frames))
            for (const each of frames)
                this.#take(each, nowMs);
        else
            this.#take(frames, nowMs);
        this.#host.onMessageEnd();
    }
    #take(frame, nowMs) {
        if (this.#isOver)
            return;
        if (frame.op === "EVENT") {
            this.wasUseful = true;
            this.#host.onEvent(frame, nowMs);
        }
        else if (frame.op === "OK") {
            this.#ok(frame);
        }
        else if (frame.op === "ERR") {
            this.#err(frame, nowMs);
        }
        else if (frame.op === "ASSIGN" || frame.op === "REVOKE") {
            this.#host.onPartitions(frame);
        }
    }
    #ok(frame) {
        const { corr } = frame;
        if (corr === undefined)
            return;
        const request = this.#takeRequest(corr);
        if (request)
            return request.ok(frame);
        if (corr.startsWith(REQUEST_PREFIX))
            return;
        this.wasUseful = true;
        const { id, due } = frame;
        const seq = frame.seq ?? (frame.scheduled ? 0 : undefined);
        const isStored = id !== undefined && seq !== undefined && this.#host.outbox.stored(corr, { id, seq, ts: frame.ts ?? due, due, duplicate: frame.duplicate });
        if (!isStored)
            this.fail(new ProtocolError("protocol_error", "replies to PUBLISH are out of order"));
    }
    #err(frame, nowMs) {
        const error = errorOf(frame);
        const { corr } = frame;
        if (corr === undefined)
            return this.#errOfConnection(error);
        const request = this.#takeRequest(corr);
        if (request)
            return request.err(error);
        if (corr.startsWith(REQUEST_PREFIX))
            return;
        if (!this.#host.outbox.rejected(corr, error, nowMs)) {
            this.fail(new ProtocolError("protocol_error", "replies to PUBLISH are out of order"));
        }
    }
    #errOfConnection(error) {
        if (error.code === "rate_limited")
            this.#host.settings.logger.warn?.("prombus: throttled", { error: error.message });
        else if (error.code === "forbidden")
            this.fail(new UnreachableError("unreachable", error.message, { cause: error }));
        else
            this.fail(error);
    }
    #takeRequest(corr) {
        const request = this.#requests.get(corr);
        if (request)
            this.#requests.delete(corr);
        return request;
    }
    #keepAlive() {
        const { keepAliveMs } = this.#host.settings;
        this.#after(keepAliveMs, () => {
            if (this.#hasReceived) {
                this.#isProbing = false;
            }
            else if (this.#isProbing) {
                return this.fail(new UnreachableError("unreachable", `no reply within ${keepAliveMs} ms`));
            }
            else {
                this.#isProbing = true;
                this.#authenticate(() => undefined);
            }
            this.#hasReceived = false;
            this.#keepAlive();
        });
    }
    #scheduleRefresh() {
        if (typeof this.#host.settings.token !== "function")
            return;
        const delayMs = refreshDelayMs(this.#token, Date.now());
        if (delayMs !== undefined)
            this.#after(delayMs, () => void this.#refresh());
    }
    async #refresh() {
        try {
            const token = await askToken(this.#host.settings.token);
            if (this.#isOver || !token)
                return;
            this.#refreshFailures = 0;
            this.#token = token;
            this.#host.onToken(token);
            this.#authenticate(() => this.#scheduleRefresh());
        }
        catch (error) {
            this.#refreshFailures += 1;
            this.#host.settings.logger.warn?.("prombus: no fresh token", { error });
            const { baseMs, capMs } = this.#host.settings.reconnect;
            if (!this.#isOver)
                this.#after(backoffMs(baseMs, capMs, this.#refreshFailures + 2, Math.random()), () => void this.#refresh());
        }
    }
    #finish(why) {
        if (this.#isOver)
            return;
        this.#isOver = true;
        for (const timer of this.#timers)
            clearTimeout(timer);
        const requests = [...this.#requests.values()];
        this.#requests.clear();
        for (const request of requests)
            request.lost();
        this.#host.onEnd(why);
    }
    #after(ms, call) {
        const timer = background(() => {
            this.#timers.delete(timer);
            call();
        }, ms);
        this.#timers.add(timer);
        return timer;
    }
}
const CONTROL_CHARS = 64 << 10;
function* messages(frames) {
    let message = "";
    for (const each of frames) {
        message += (message ? "," : "[") + each;
        if (message.length >= CONTROL_CHARS) {
            yield message + "]";
            message = "";
        }
    }
    if (message)
        yield frames.length === 1 ? message.slice(1) : message + "]";
}
