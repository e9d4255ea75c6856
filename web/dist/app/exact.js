export class ExactNumber {
    source;
    constructor(source) {
        this.source = source;
    }
    toJSON() {
        const { rawJSON } = JSON;
        return rawJSON ? rawJSON(this.source) : Number(this.source);
    }
    toString() {
        return this.source;
    }
}
export function parseExact(text) {
    const revive = (_key, value, context) => {
        const source = context?.source;
        return typeof value === "number" && source !== undefined && !Number.isSafeInteger(value) && String(value) !== source ? new ExactNumber(source) : value;
    };
    return JSON.parse(text, revive);
}
