export async function defaultWebSocket() {
    return globalThis.WebSocket;
}
