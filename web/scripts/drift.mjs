/** Fails where the checked-in files of the page are not what the sources give. */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const [fresh, checkedIn] = process.argv.slice(2);

function files(folder, prefix = "") {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path, `${prefix}${name}/`) : [[`${prefix}${name}`, readFileSync(path, "utf8")]];
  });
}

const [expected, present] = [fresh, checkedIn].map((folder) => new Map(files(folder)));
const names = new Set([...expected.keys(), ...present.keys()]);
const different = [...names].filter((name) => expected.get(name) !== present.get(name));
if (different.length > 0) {
  console.error(`web/${checkedIn} is not what the sources give; run make web-build and commit it:\n  ${different.join("\n  ")}`);
  process.exit(1);
}
