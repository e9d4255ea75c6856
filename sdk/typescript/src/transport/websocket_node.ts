/** The WebSocket of Node: the global one where there is one (Node 22), else that of the package `ws`. */

import type { WebSocketConstructor, WebSocketLike } from "./websocket.js";

/** The largest message that is taken from the server. */
const MAX_MESSAGE_BYTES = 64 << 20;

export async function defaultWebSocket(): Promise<WebSocketConstructor> {
  const builtIn = (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket;
  if (builtIn) return builtIn;
  const { WebSocket } = await import("ws");
  const open = function (url: string): WebSocketLike {
    return new WebSocket(url, { perMessageDeflate: false, maxPayload: MAX_MESSAGE_BYTES }) as unknown as WebSocketLike;
  };
  return open as unknown as WebSocketConstructor;
}
