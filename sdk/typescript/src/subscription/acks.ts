/** Acknowledgements on their way: gathered into runs of one topic, sent, and kept until the server confirms them. */

import type { PrombusError } from "../errors.js";
import { MAX_OPEN_REQUESTS, type Session } from "../link/session.js";
import type { Logger } from "../options.js";
import { SettledMemory } from "./settled.js";

/** Acknowledged events of one topic, to go out in one frame. */
interface AckRun {
  topic: string;
  ids: string[];
  /** What the memory knows them by: the ids, where the subscription has one topic. */
  keys: string[];
}

/** An acknowledgement that somebody waits for. */
interface Confirm {
  topic: string;
  id: string;
  key: string;
  resolve(): void;
  reject(error: PrombusError): void;
}

/** A frame has at most this many acknowledgements. */
const MAX_RUN = 512;

export class PendingAcks {
  readonly memory = new SettledMemory();
  #runs: AckRun[] = [];
  #confirms: Confirm[] = [];
  readonly #hasOneTopic: boolean;
  readonly #logger: Logger;

  constructor(hasOneTopic: boolean, logger: Logger) {
    this.#hasOneTopic = hasOneTopic;
    this.#logger = logger;
  }

  get isEmpty(): boolean {
    return this.#runs.length === 0 && this.#confirms.length === 0;
  }

  keyOf(topic: string, id: string): string {
    return this.#hasOneTopic ? id : `${topic} ${id}`;
  }

  push(topic: string, id: string): void {
    let run = this.#runs[this.#runs.length - 1];
    if (!run || run.topic !== topic || run.ids.length >= MAX_RUN) {
      const ids: string[] = [];
      run = { topic, ids, keys: this.#hasOneTopic ? ids : [] };
      this.#runs.push(run);
    }
    run.ids.push(id);
    if (!this.#hasOneTopic) run.keys.push(this.keyOf(topic, id));
  }

  confirm(topic: string, id: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#confirms.push({ topic, id, key: this.keyOf(topic, id), resolve, reject });
    });
  }

  /** Writes what waits, unless the server owes too many replies; what stays goes with a later flush. */
  write(session: Session, group: string | undefined, touch: () => void): void {
    while (this.#runs.length > 0 && session.openRequests < MAX_OPEN_REQUESTS) {
      const run = this.#runs.shift();
      if (run) this.#writeRun(session, group, run, touch);
    }
    while (this.#confirms.length > 0 && session.openRequests < MAX_OPEN_REQUESTS) {
      const confirm = this.#confirms.shift();
      if (confirm) this.#writeConfirm(session, group, confirm, touch);
    }
  }

  /** The connection is gone; what it did not confirm waits for the next one. */
  onDisconnect(nowMs: number): void {
    const keys = [...this.#runs.flatMap((run) => run.keys), ...this.#confirms.map((confirm) => confirm.key)];
    this.memory.onDisconnect(keys, nowMs);
  }

  /** Nothing can be acknowledged any more. */
  end(error: PrombusError): void {
    this.#runs = [];
    for (const confirm of this.#confirms.splice(0)) confirm.reject(error);
  }

  #writeRun(session: Session, group: string | undefined, run: AckRun, touch: () => void): void {
    session.request("ACK", { topic: run.topic, group, ids: run.ids }, {
      ok: () => {
        this.memory.confirmed(run.keys, Date.now());
        if (!this.isEmpty) touch();
      },
      err: (error) => {
        this.#logger.warn?.("prombus: acknowledgement rejected", { topic: run.topic, count: run.ids.length, code: error.code, error: error.message });
        if (error.retryable) this.#runs.push(run);
        // Under the lease of an earlier connection, or of another member; if they come here, they are acknowledged again.
        else this.memory.expect(run.keys, Date.now());
        if (!this.isEmpty) setTimeout(touch, RETRY_MS);
      },
      lost: () => void this.#runs.push(run),
    });
  }

  #writeConfirm(session: Session, group: string | undefined, confirm: Confirm, touch: () => void): void {
    session.request("ACK", { topic: confirm.topic, group, id: confirm.id }, {
      ok: () => {
        this.memory.confirmed([confirm.key], Date.now());
        confirm.resolve();
        if (!this.isEmpty) touch();
      },
      err: (error) => confirm.reject(error),
      lost: () => void this.#confirms.push(confirm),
    });
  }
}

/** When acknowledgements that the server could not take go again. */
const RETRY_MS = 100;
