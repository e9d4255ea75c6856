//! The types of TypeScript: where its compiler is installed beside the SDK or the dashboard (`make sdk` installs it), it
//! takes them and refuses what does not fit them. The text itself is compared with a committed file in any case.

use super::generate;
use prombus_schema::Language;
use std::path::{Path, PathBuf};
use std::process::Command;

const OPTIONS: [&str; 9] = [
    "--noEmit",
    "--strict",
    "--target",
    "es2022",
    "--module",
    "esnext",
    "--moduleResolution",
    "bundler",
    "--skipLibCheck",
];

const GOOD: &str = r#"import type { Nested, Shape, Topics } from "./topics";
export const order: Topics["order.created"] = {
  id: "1", type: "web", lineItems: [{ sku: "a", count: 1 }], note: null, origin: 1, address: { zip: "1", geo: [1, 2] },
};
export const shape: Shape = { kind: "circle", r: 1 };
export const tree: Topics["tree"] = { value: 1, children: [{ value: 2 }], parent: null };
export const nested: Nested = [[], [[]]];
"#;

/// Each is wrong in one way.
const BAD: [&str; 4] = [
    r#"export const order: Topics["order.created"] = { id: 1, type: "web", lineItems: [], note: null, origin: 1 };"#,
    r#"export const order: Topics["order.created"] = { id: "1", type: "fax", lineItems: [], note: null, origin: 1 };"#,
    r#"export const tree: Topics["tree"] = { children: [] };"#,
    r#"export const shape: Topics["shape"] = { kind: "circle", side: 1 };"#,
];

#[test]
fn the_compiler_takes_the_types_and_refuses_what_does_not_fit_them() {
    // Without the compiler only the text is compared, by the test of the committed files.
    let Some(compiler) = compiler() else {
        return;
    };
    let folder = std::env::temp_dir().join(format!("prombus-codegen-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    write("topics.ts", &generate(Language::TypeScript));
    let compile = |files: &[PathBuf]| {
        let output = Command::new(&compiler).args(OPTIONS).args(files).output();
        let output = output.expect("a compiler");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text)
    };
    let good = compile(&[write("good.ts", GOOD)]);
    let bad: Vec<PathBuf> = (0..)
        .zip(BAD)
        .map(|(at, text): (u32, _)| {
            let import = "import type { Topics } from \"./topics\";\n";
            write(&format!("bad{at}.ts"), &format!("{import}{text}\n"))
        })
        .collect();
    let refused = compile(&bad);
    std::fs::remove_dir_all(&folder).expect("removed");
    assert!(good.0, "{}", good.1);
    for at in 0..BAD.len() {
        assert!(refused.1.contains(&format!("bad{at}.ts")), "{}", refused.1);
    }
}

fn compiler() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    ["sdk/typescript", "web"]
        .iter()
        .map(|folder| root.join(folder).join("node_modules/.bin/tsc"))
        .find(|path| path.exists())
}
