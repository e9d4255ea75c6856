import { SchemaInvalidError } from "./errors.js";
export function defineTopic(name, schema) {
    return { name, schema };
}
export function nameOf(topic) {
    return typeof topic === "string" ? topic : topic.name;
}
export function schemaOf(topic) {
    return typeof topic === "string" ? undefined : topic.schema;
}
export function checkPayload(schema, topic, payload) {
    const judge = (result) => {
        if (result.issues)
            throw new InvalidPayloadError(topic, result.issues);
    };
    const result = schema["~standard"].validate(payload);
    return result instanceof Promise ? result.then(judge) : judge(result);
}
export class InvalidPayloadError extends SchemaInvalidError {
    issues;
    constructor(topic, issues) {
        super("schema_invalid", `invalid payload for ${topic}: ${issuesText(issues)}`);
        this.issues = issues;
    }
}
export function issuesText(issues) {
    const format = ({ message, path }) => {
        const parts = path?.map((part) => String(typeof part === "object" ? part.key : part));
        return parts?.length ? `${parts.join(".")}: ${message}` : message;
    };
    return issues.map(format).join("; ");
}
