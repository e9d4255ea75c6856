/** A TCP proxy in front of the server that cuts, delays, half-closes and falls silent. */

import { connect, createServer, type Server, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { cleanUp } from "./cleanup.js";

export class Proxy {
  private readonly pairs = new Set<[Socket, Socket]>();
  private server: Server | undefined;
  /** How long each piece is held up. */
  delayMs = 0;
  /** Nothing passes, and both sides stay open. */
  isSilent = false;
  connections = 0;
  port = 0;

  static async start(context: Pick<TestContext, "after">, target: number): Promise<Proxy> {
    const proxy = new Proxy();
    const server = createServer({ allowHalfOpen: true }, (near) => proxy.join(near, target));
    proxy.server = server;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    proxy.port = (server.address() as { port: number }).port;
    cleanUp(context, () => proxy.stop());
    return proxy;
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}`;
  }

  /** Cuts all connections without a word. */
  cut(): void {
    for (const [near, far] of this.pairs) {
      near.destroy();
      far.destroy();
    }
    this.pairs.clear();
  }

  /** Ends the direction from the server to the client only. */
  halfClose(): void {
    for (const [near] of this.pairs) near.end();
  }

  private stop(): void {
    this.cut();
    this.server?.close();
  }

  private join(near: Socket, target: number): void {
    this.connections += 1;
    const far = connect({ port: target, host: "127.0.0.1", allowHalfOpen: true });
    const pair: [Socket, Socket] = [near, far];
    this.pairs.add(pair);
    this.pipe(near, far);
    this.pipe(far, near);
    const gone = (): void => {
      this.pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    near.on("close", gone);
    far.on("close", gone);
    near.on("error", gone);
    far.on("error", gone);
  }

  private pipe(from: Socket, to: Socket): void {
    let order = Promise.resolve();
    from.on("data", (piece) => {
      if (this.isSilent) return;
      if (this.delayMs === 0) return void to.write(piece);
      const { delayMs } = this;
      order = order.then(() => new Promise((resolve) => setTimeout(() => resolve(void to.write(piece)), delayMs)));
    });
    from.on("end", () => void order.then(() => to.end()));
  }
}
