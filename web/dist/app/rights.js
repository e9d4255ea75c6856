import { currentToken, get } from "./api.js";
const MAX_REMEMBERED = 500;
const remembered = new Map();
export function access(topic, group) {
    const key = JSON.stringify([currentToken(), topic, group]);
    let answer = remembered.get(key);
    if (!answer) {
        if (remembered.size >= MAX_REMEMBERED)
            remembered.clear();
        answer = get("/access", { topic, group });
        answer.catch(() => remembered.delete(key));
        remembered.set(key, answer);
    }
    return answer;
}
export function withAccess(use, topic, group) {
    access(topic, group).then(use).catch(() => undefined);
}
