export class Socket {
    #isOver = false;
    #socket;
    #failure = "";
    #listener;
    constructor(implementation, url, listener) {
        this.#listener = listener;
        const socket = new implementation(url);
        this.#socket = socket;
        socket.onopen = () => {
            if (!this.#isOver)
                listener.onOpen();
        };
        socket.onmessage = ({ data }) => {
            if (this.#isOver)
                return;
            if (typeof data === "string")
                listener.onText(data);
            else
                this.end("the server sent a binary message");
        };
        socket.onerror = (event) => {
            this.#failure = event.message || event.error?.message || "the connection failed";
        };
        socket.onclose = (event) => {
            this.end(event.reason || this.#failure || `the connection was closed (${event.code ?? 1006})`);
        };
    }
    send(text) {
        if (!this.#isOver)
            this.#socket.send(text);
    }
    end(reason) {
        if (this.#isOver)
            return;
        this.#isOver = true;
        try {
            this.#socket.close(1000);
            if (this.#socket.terminate)
                setTimeout(() => this.#socket.terminate?.(), TERMINATE_MS);
        }
        catch {
        }
        this.#listener.onEnd(reason);
    }
}
const TERMINATE_MS = 200;
