/** A request as curl, TypeScript and Rust. Where the clients have a call for it, that is shown. */

import { queryText } from "../api.js";
import type { Operation } from "./playground_document.js";

export interface Call {
  operation: Operation;
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: string | undefined;
}

export function snippets(call: Call, hasToken: boolean): [string, string][] {
  return [["curl", curl(call, hasToken)], ["TypeScript", typescript(call, hasToken)], ["Rust", rust(call, hasToken)]];
}

function curl({ operation, path, query, headers, body }: Call, hasToken: boolean): string {
  const parts = ["curl"];
  if (operation.method !== "GET" && !(operation.method === "POST" && body !== undefined)) parts.push(`-X ${operation.method}`);
  if (hasToken) parts.push('-H "Authorization: Bearer $TOKEN"');
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (operation.bodyType && operation.bodyType !== "application/json") parts.push(`-H 'Content-Type: ${operation.bodyType}'`);
  if (body !== undefined) parts.push(`--data-binary ${quoted(body)}`);
  return [...parts, quoted(location.origin + path + queryText(query))].join(" ");
}

function quoted(text: string): string {
  return `'${text.replace(/'/g, `'\\''`)}'`;
}

function typescript(call: Call, hasToken: boolean): string {
  const { operation, path, query, body } = call;
  const socket = location.origin.replace(/^http/, "ws");
  const connect = `import { connect } from "@prombus/client";\nconst bus = await connect({ url: ${JSON.stringify(socket)}${hasToken ? ", token" : ""} });\n`;
  const topic = JSON.stringify(query["topic"] ?? decodeURIComponent(path.split("/")[2] ?? ""));
  const compact = oneLine(body);
  switch (operation.id) {
    case "publish": return `${connect}const stored = await bus.publish(${topic}, ${compact});`;
    case "replay": return `${connect}for await (const event of bus.replay(${topic}, ${optionsText(query)})) console.log(event);`;
    case "export": return `${connect}for await (const event of bus.export(${topic}, ${optionsText(query)})) console.log(event);`;
    case "listStates": return `${connect}const page = await bus.list(${topic}, ${optionsText(query)});`;
    case "snap": return `${connect}const state = await bus.stateAt(${topic}, ${JSON.stringify(decodeURIComponent(path.split("/")[3] ?? ""))});`;
    default: {
      const init = [operation.method === "GET" ? "" : `method: ${JSON.stringify(operation.method)}`, hasToken ? "headers: { authorization: `Bearer ${token}` }" : "", body === undefined ? "" : `body: JSON.stringify(${compact})`].filter((part) => part !== "");
      return `const response = await fetch(${JSON.stringify(location.origin + path + queryText(query))}${init.length > 0 ? `, { ${init.join(", ")} }` : ""});\nconsole.log(await response.json());`;
    }
  }
}

function rust({ operation, path, query, body }: Call, hasToken: boolean): string {
  const socket = location.origin.replace(/^http/, "ws");
  if (operation.id === "publish") {
    const topic = decodeURIComponent(path.split("/")[2] ?? "");
    return `let client = Client::connect(${JSON.stringify(socket)}, ClientOptions::default()).await?;\nlet stored = client.publish(${JSON.stringify(topic)}, &serde_json::json!(${oneLine(body)}), &PublishOptions::default()).await?;`;
  }
  const method = operation.method.toLowerCase();
  const lines = [`let reply = reqwest::Client::new()`, `    .${method}(${JSON.stringify(location.origin + path + queryText(query))})`];
  if (hasToken) lines.push("    .bearer_auth(token)");
  if (body !== undefined) lines.push(`    .body(r#"${oneLine(body)}"#)`);
  return [...lines, "    .send().await?.text().await?;"].join("\n");
}

function oneLine(body: string | undefined): string {
  try {
    return JSON.stringify(JSON.parse(body ?? "null"));
  } catch {
    return body ?? "";
  }
}

function optionsText(query: Record<string, string>): string {
  const { topic: _topic, ...rest } = query;
  return JSON.stringify(Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, /^\d{1,15}$/.test(value) ? Number(value) : value])));
}
