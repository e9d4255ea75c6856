/** Removes what was compiled, so that nothing of a removed file is packed or tested. */

import { rmSync } from "node:fs";

for (const folder of ["dist", "build"]) rmSync(new URL(`../${folder}`, import.meta.url), { recursive: true, force: true });
