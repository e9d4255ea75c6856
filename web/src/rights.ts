/** What the token allows, asked once for each topic and group. */

import { currentToken, get } from "./api.js";
import type { Access } from "./model.js";

/** The most answers that are remembered. */
const MAX_REMEMBERED = 500;

const remembered = new Map<string, Promise<Access>>();

export function access(topic?: string, group?: string): Promise<Access> {
  const key = JSON.stringify([currentToken(), topic, group]);
  let answer = remembered.get(key);
  if (!answer) {
    if (remembered.size >= MAX_REMEMBERED) remembered.clear();
    answer = get<Access>("/access", { topic, group });
    // What failed is asked again next time.
    answer.catch(() => remembered.delete(key));
    remembered.set(key, answer);
  }
  return answer;
}

/** Calls back with what is allowed. A server that does not answer, or asks for a token, is told of elsewhere. */
export function withAccess(use: (access: Access) => void, topic?: string, group?: string): void {
  access(topic, group).then(use).catch(() => undefined);
}
