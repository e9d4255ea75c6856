import { closedError, errorFor, GaveUpError, messageOf, NoTokenError, PrombusError } from "../errors.js";
import { Listeners } from "../listeners.js";
import { Outbox } from "../publish/outbox.js";
import { backoffMs, sleep } from "../timers.js";
import { defaultWebSocket } from "../transport/websocket_browser.js";
import { isAboutToken, Session } from "./session.js";
import { askToken } from "./token.js";
const MAX_GATHER_ROUNDS = 6;
export class Link {
    settings;
    outbox;
    events;
    state = "connecting";
    #served = new Set();
    #touched = new Set();
    #delivered = new Set();
    #route;
    #session;
    #isSessionOpen = false;
    #isFlushPlanned = false;
    #closing = new AbortController();
    #rejectedToken;
    #sessionEnded = () => undefined;
    #firstConnected;
    #failures = 0;
    #latestToken;
    #error;
    constructor(settings) {
        this.settings = settings;
        this.outbox = new Outbox(settings);
        this.events = new Listeners((error) => settings.logger.error?.("prombus: a listener threw", { error }));
    }
    start() {
        return new Promise((resolve, reject) => {
            this.#firstConnected = resolve;
            this.over = this.#live().then((error) => {
                this.#end(error);
                reject(error);
            });
        });
    }
    over = Promise.resolve();
    get ended() {
        return this.#error;
    }
    add(served) {
        this.#served.add(served);
        this.#route = undefined;
        this.touch(served);
    }
    remove(served) {
        this.#served.delete(served);
        this.#touched.delete(served);
        this.#route = undefined;
    }
    touch(served) {
        if (served)
            this.#touched.add(served);
        if (this.#isFlushPlanned || !this.#session)
            return;
        this.#isFlushPlanned = true;
        this.#gather(0, -1);
    }
    async currentToken() {
        const latestToken = this.#latestToken;
        const isStale = !latestToken || (latestToken.expiresAt ?? Infinity) <= Date.now();
        if (isStale && this.settings.token !== undefined)
            this.#latestToken = await askToken(this.settings.token);
        return this.#latestToken?.token;
    }
    close() {
        this.#closing.abort();
        this.#session?.close();
    }
    onOpen() {
        this.#isSessionOpen = true;
        this.#setState("connected");
        this.events.emit("connected", { attempt: this.#failures + 1 });
        this.#rejectedToken = undefined;
        this.#firstConnected?.();
        this.#firstConnected = undefined;
        for (const served of this.#served)
            this.#touched.add(served);
    }
    onEvent(event, nowMs) {
        const to = this.#find(event.topic, event.group);
        if (!to)
            return;
        this.#delivered.add(to);
        to.deliver(event, nowMs);
    }
    onPartitions(frame) {
        this.#find(frame.topic, frame.group)?.onPartitions(frame);
    }
    onMessageEnd() {
        for (const served of this.#delivered)
            served.afterDelivery();
        this.#delivered.clear();
        this.touch();
    }
    onToken(token) {
        this.#latestToken = token;
    }
    onEnd(why) {
        this.#session = undefined;
        this.#isSessionOpen = false;
        this.outbox.rewind();
        for (const served of this.#served)
            served.onDisconnect();
        this.#sessionEnded(why);
    }
    async #live() {
        for (;;) {
            const why = await this.#connectOnce();
            if (this.#closing.signal.aborted)
                return closedError();
            if (this.#isFatal(why))
                return why;
            this.#failures += 1;
            const { baseMs, capMs, maxAttempts } = this.settings.reconnect;
            if (this.#failures > maxAttempts) {
                return new GaveUpError("gave_up", `gave up after ${this.#failures} attempts; the last one: ${why.message}`, { cause: why });
            }
            this.#setState(this.#firstConnected ? "connecting" : "reconnecting");
            this.events.emit("disconnected", { error: why });
            this.settings.logger.warn?.("prombus: disconnected", { error: why.message, failures: this.#failures });
            const pauseMs = Math.max(backoffMs(baseMs, capMs, this.#failures, Math.random()), why.retryAfterMs ?? 0);
            await sleep(pauseMs, this.#closing.signal).catch(() => undefined);
            if (this.#closing.signal.aborted)
                return closedError();
        }
    }
    async #connectOnce() {
        try {
            const token = await askToken(this.settings.token);
            if (token)
                this.#latestToken = token;
            const implementation = this.settings.webSocket ?? (await defaultWebSocket());
            if (this.#closing.signal.aborted)
                return closedError();
            const ended = new Promise((resolve) => (this.#sessionEnded = resolve));
            const session = new Session(this, implementation, token);
            this.#session = session;
            const why = await ended;
            if (session.wasUseful)
                this.#failures = 0;
            return this.#judge(why, token);
        }
        catch (error) {
            if (error instanceof PrombusError)
                return error;
            return errorFor("unreachable", messageOf(error), { cause: error });
        }
    }
    #judge(why, token) {
        if (!isAboutToken(why) || typeof this.settings.token !== "function" || this.#rejectedToken === token?.token)
            return why;
        this.#rejectedToken = token?.token;
        return new NoTokenError("no_token", `the server rejected the token: ${why.message}`, { cause: why });
    }
    #isFatal(why) {
        return isAboutToken(why) || (this.#firstConnected !== undefined && !this.settings.waitForServer);
    }
    #end(error) {
        this.#error = error;
        this.outbox.end(error);
        for (const served of [...this.#served])
            served.onClientEnd(error);
        this.#served.clear();
        this.#touched.clear();
        this.#setState("closed");
        this.events.emit("closed", { error });
    }
    #gather(round, pushed) {
        if (round >= MAX_GATHER_ROUNDS || pushed === this.outbox.pushed)
            return this.#flush();
        const seen = this.outbox.pushed;
        queueMicrotask(() => queueMicrotask(() => this.#gather(round + 1, seen)));
    }
    #flush() {
        this.#isFlushPlanned = false;
        const session = this.#session;
        if (!session)
            return;
        if (this.#isSessionOpen && this.#touched.size > 0) {
            const touched = [...this.#touched];
            this.#touched.clear();
            this.#isFlushPlanned = true;
            for (const served of touched)
                served.serve(session);
            this.#isFlushPlanned = false;
        }
        session.flush();
        if (this.#touched.size > 0 && this.#isSessionOpen)
            this.touch();
    }
    #find(topic, group) {
        const route = this.#route;
        if (route && route.topic === topic && route.group === group)
            return route.to;
        let only;
        let count = 0;
        for (const served of this.#served) {
            if (served.isNamed(topic, group)) {
                this.#route = { topic, group, to: served };
                return served;
            }
            if (served.hasGroup(group)) {
                only = served;
                count += 1;
            }
        }
        return count === 1 ? only : undefined;
    }
    #setState(state) {
        if (state === this.state)
            return;
        this.state = state;
        this.events.emit("state", state);
    }
}
