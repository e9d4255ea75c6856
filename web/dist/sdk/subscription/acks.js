import { MAX_OPEN_REQUESTS } from "../link/session.js";
import { SettledMemory } from "./settled.js";
const MAX_RUN = 512;
export class PendingAcks {
    memory = new SettledMemory();
    #runs = [];
    #confirms = [];
    #hasOneTopic;
    #logger;
    constructor(hasOneTopic, logger) {
        this.#hasOneTopic = hasOneTopic;
        this.#logger = logger;
    }
    get isEmpty() {
        return this.#runs.length === 0 && this.#confirms.length === 0;
    }
    keyOf(topic, id) {
        return this.#hasOneTopic ? id : `${topic} ${id}`;
    }
    push(topic, id) {
        let run = this.#runs[this.#runs.length - 1];
        if (!run || run.topic !== topic || run.ids.length >= MAX_RUN) {
            const ids = [];
            run = { topic, ids, keys: this.#hasOneTopic ? ids : [] };
            this.#runs.push(run);
        }
        run.ids.push(id);
        if (!this.#hasOneTopic)
            run.keys.push(this.keyOf(topic, id));
    }
    confirm(topic, id) {
        return new Promise((resolve, reject) => {
            this.#confirms.push({ topic, id, key: this.keyOf(topic, id), resolve, reject });
        });
    }
    write(session, group, touch) {
        while (this.#runs.length > 0 && session.openRequests < MAX_OPEN_REQUESTS) {
            const run = this.#runs.shift();
            if (run)
                this.#writeRun(session, group, run, touch);
        }
        while (this.#confirms.length > 0 && session.openRequests < MAX_OPEN_REQUESTS) {
            const confirm = this.#confirms.shift();
            if (confirm)
                this.#writeConfirm(session, group, confirm, touch);
        }
    }
    onDisconnect(nowMs) {
        const keys = [...this.#runs.flatMap((run) => run.keys), ...this.#confirms.map((confirm) => confirm.key)];
        this.memory.onDisconnect(keys, nowMs);
    }
    end(error) {
        this.#runs = [];
        for (const confirm of this.#confirms.splice(0))
            confirm.reject(error);
    }
    #writeRun(session, group, run, touch) {
        session.request("ACK", { topic: run.topic, group, ids: run.ids }, {
            ok: () => {
                this.memory.confirmed(run.keys, Date.now());
                if (!this.isEmpty)
                    touch();
            },
            err: (error) => {
                this.#logger.warn?.("prombus: acknowledgement rejected", { topic: run.topic, count: run.ids.length, code: error.code, error: error.message });
                if (error.retryable)
                    this.#runs.push(run);
                else
                    this.memory.expect(run.keys, Date.now());
                if (!this.isEmpty)
                    setTimeout(touch, RETRY_MS);
            },
            lost: () => void this.#runs.push(run),
        });
    }
    #writeConfirm(session, group, confirm, touch) {
        session.request("ACK", { topic: confirm.topic, group, id: confirm.id }, {
            ok: () => {
                this.memory.confirmed([confirm.key], Date.now());
                confirm.resolve();
                if (!this.isEmpty)
                    touch();
            },
            err: (error) => confirm.reject(error),
            lost: () => void this.#confirms.push(confirm),
        });
    }
}
const RETRY_MS = 100;
