/** The WebSocket of browsers. */

import type { WebSocketConstructor } from "./websocket.js";

export async function defaultWebSocket(): Promise<WebSocketConstructor> {
  return (globalThis as unknown as { WebSocket: WebSocketConstructor }).WebSocket;
}
