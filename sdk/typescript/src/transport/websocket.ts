/** One WebSocket as the connection uses it: text in both directions, and one end. */

/** What is used of a WebSocket; the browser's, Node's and that of `ws` all fit. */
export interface WebSocketLike {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(text: string): void;
  close(code?: number, reason?: string): void;
  /** Only `ws` has it: ends without waiting for the other side. */
  terminate?(): void;
}

export type WebSocketConstructor = new (url: string) => WebSocketLike;

/** Receives the events of a socket. Nothing is called after `onEnd`. */
export interface SocketListener {
  onOpen(): void;
  onText(text: string): void;
  onEnd(reason: string): void;
}

/** An open or opening WebSocket that ends exactly once. */
export class Socket {
  #isOver = false;
  readonly #socket: WebSocketLike;
  #failure = "";
  readonly #listener: SocketListener;

  constructor(implementation: WebSocketConstructor, url: string, listener: SocketListener) {
    this.#listener = listener;
    const socket = new implementation(url);
    this.#socket = socket;
    socket.onopen = () => {
      if (!this.#isOver) listener.onOpen();
    };
    socket.onmessage = ({ data }: { data: unknown }) => {
      if (this.#isOver) return;
      if (typeof data === "string") listener.onText(data);
      else this.end("the server sent a binary message");
    };
    socket.onerror = (event: { message?: string; error?: { message?: string } }) => {
      this.#failure = event.message || event.error?.message || "the connection failed";
    };
    socket.onclose = (event: { code?: number; reason?: string }) => {
      this.end(event.reason || this.#failure || `the connection was closed (${event.code ?? 1006})`);
    };
  }

  send(text: string): void {
    if (!this.#isOver) this.#socket.send(text);
  }

  /** Ends the socket here and now; the other side gets a close frame if it can. */
  end(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    try {
      this.#socket.close(1000);
      // Closing waits for the other side, which may never reply.
      if (this.#socket.terminate) setTimeout(() => this.#socket.terminate?.(), TERMINATE_MS);
    } catch {
      // A socket that is still connecting in some implementations cannot be closed; its events are ignored.
    }
    this.#listener.onEnd(reason);
  }
}

/** How long the other side may take to reply to a close. */
const TERMINATE_MS = 200;
