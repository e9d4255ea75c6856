//! Who may use whom. Dependencies point one way, from the edge to the store contract; stores implement it and nothing
//! above it knows them. The log's core stays free of everything that is not a checksum or an error type.

use crate::tree::assert_kept;
use crate::workspace::{Package, packages};
use std::collections::BTreeSet;

/// A crate of the house: where it lives and what it may use.
struct Room {
    package: &'static str,
    folder: &'static str,
    uses: Uses,
    /// The libraries from outside that it may use; `None` where that is not fixed.
    libraries: Option<Libraries>,
}

/// Libraries from outside.
#[derive(Clone, Copy)]
struct Libraries {
    always: &'static [&'static str],
    /// Only behind a feature.
    optional: &'static [&'static str],
}

/// Crates of the workspace that a room may use.
enum Uses {
    Only(&'static [&'static str]),
    /// The composition root, and what tests or measures the whole.
    Everything,
}

/// The same table as in ARCHITECTURE.md. Rooms that are yet to be built have their place already.
const ROOMS: &[Room] = &[
    Room {
        package: "prombus-store",
        folder: "store",
        uses: Uses::Only(&[]),
        libraries: Some(Libraries {
            always: &["thiserror", "tokio", "xxhash-rust"],
            optional: &[],
        }),
    },
    Room {
        package: "prombus-log",
        folder: "log",
        uses: Uses::Only(&["prombus-store"]),
        libraries: Some(Libraries {
            always: &["fs4", "memmap2", "rustix", "thiserror", "xxhash-rust"],
            optional: &["tokio"],
        }),
    },
    room(
        "prombus-replicated",
        "replicated",
        Uses::Only(&["prombus-log", "prombus-store"]),
    ),
    Room {
        package: "prombus-schema",
        folder: "schema",
        uses: Uses::Only(&[]),
        libraries: Some(Libraries {
            always: &[
                "jsonschema",
                "regex-automata",
                "serde",
                "serde_json",
                "thiserror",
            ],
            optional: &[],
        }),
    },
    room(
        "prombus-interface",
        "interface",
        Uses::Only(&["prombus-store"]),
    ),
    room(
        "prombus",
        "bus",
        Uses::Only(&["prombus-interface", "prombus-schema", "prombus-store"]),
    ),
    room("prombus-api", "api", Uses::Only(&["prombus-interface"])),
    room(
        "prombus-gateway",
        "gateway",
        Uses::Only(&["prombus-api", "prombus"]),
    ),
    room(
        "prombus-client",
        "client",
        Uses::Only(&["prombus-api", "prombus-interface"]),
    ),
    room(
        "prombus-connect",
        "connect",
        Uses::Only(&["prombus", "prombus-client"]),
    ),
    room(
        "prombus-sqlite",
        "sqlite",
        Uses::Only(&["prombus", "prombus-connect"]),
    ),
    room(
        "prombus-mongo",
        "mongo",
        Uses::Only(&["prombus", "prombus-connect"]),
    ),
    room("prombus-cli", "cli", Uses::Everything),
    room("prombus-bench", "bench", Uses::Everything),
    room("prombus-sim", "sim", Uses::Everything),
    room("prombus-fuzz", "fuzz", Uses::Everything),
    room("prombus-tests", "tests", Uses::Everything),
];

/// The stores, which the tests of every crate above the contract may open, and `Bus::open_url` behind features.
const STORES: &[&str] = &["prombus-log", "prombus-store"];

const fn room(package: &'static str, folder: &'static str, uses: Uses) -> Room {
    Room {
        package,
        folder,
        uses,
        libraries: None,
    }
}

#[test]
fn crates_use_only_what_their_room_may() {
    assert_kept(&wrong_arrows(&packages()));
}

fn wrong_arrows(packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in packages {
        let name = &package.name;
        match ROOMS.iter().find(|room| room.package == name) {
            None => wrong.push(format!(
                "{name} has no room: add it to ROOMS in tests/house/arrows.rs and to the table in ARCHITECTURE.md"
            )),
            Some(room) => wrong_arrows_of(package, room, packages, &mut wrong),
        }
    }
    wrong
}

fn wrong_arrows_of(package: &Package, room: &Room, packages: &[Package], wrong: &mut Vec<String>) {
    let name = &package.name;
    if package.folder != room.folder {
        wrong.push(format!(
            "{name} belongs in {}/, not in {}/",
            room.folder, package.folder
        ));
    }
    for dependency in &package.dependencies {
        let used = dependency.name.as_str();
        let is_ours = packages.iter().any(|other| other.name == used);
        let is_fine = match (is_ours, dependency.is_dev) {
            (true, false) => {
                let is_by_url = name == "prombus" && dependency.is_optional;
                uses_directly(room, used) || is_by_url && STORES.contains(&used)
            }
            // A crate's tests may look at everything below it, and at itself with other features.
            (true, true) => {
                let below = below(name);
                used == name
                    || matches!(room.uses, Uses::Everything)
                    || below.contains(used)
                    || (STORES.contains(&used) && below.contains("prombus-store"))
            }
            (false, false) => room.libraries.is_none_or(|libraries| {
                libraries.always.contains(&used)
                    || (dependency.is_optional && libraries.optional.contains(&used))
            }),
            (false, true) => true,
        };
        if !is_fine {
            let kind = if dependency.is_dev {
                " in its tests"
            } else {
                ""
            };
            wrong.push(format!("{name} may not use {used}{kind}"));
        }
    }
}

fn uses_directly(room: &Room, used: &str) -> bool {
    match room.uses {
        Uses::Only(rooms) => rooms.contains(&used),
        Uses::Everything => used != room.package,
    }
}

/// The rooms that one reaches by following the arrows, without itself unless there is a circle.
fn below(package: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut open = vec![package];
    while let Some(next) = open.pop() {
        for room in ROOMS.iter().filter(|room| room.package == next) {
            if let Uses::Only(rooms) = &room.uses {
                open.extend(rooms.iter().copied().filter(|used| !found.contains(used)));
                found.extend(rooms.iter().copied());
            }
        }
    }
    found
}

mod tests {
    use super::*;
    use crate::workspace::Dependency;

    /// Crates with what they use; a name that begins with `dev:` is used by tests only, one with `opt:` behind a
    /// feature.
    fn house(crates: &[(&str, &str, &[&str])]) -> Vec<Package> {
        let dependency = |name: &&str| Dependency {
            name: name
                .trim_start_matches("dev:")
                .trim_start_matches("opt:")
                .to_owned(),
            is_dev: name.starts_with("dev:"),
            is_optional: name.starts_with("opt:"),
        };
        let package = |(name, folder, uses): &(&str, &str, &[&str])| Package {
            name: (*name).to_owned(),
            folder: (*folder).to_owned(),
            dependencies: uses.iter().map(dependency).collect(),
        };
        crates.iter().map(package).collect()
    }

    #[test]
    fn the_table_has_no_circle() {
        for room in ROOMS {
            assert!(
                !below(room.package).contains(room.package),
                "{} is below itself",
                room.package
            );
        }
        assert_eq!(
            below("prombus"),
            BTreeSet::from(["prombus-interface", "prombus-schema", "prombus-store"])
        );
    }

    #[test]
    fn arrows_that_point_down_are_fine() {
        let good = house(&[
            (
                "prombus-log",
                "log",
                &["prombus-store", "thiserror", "opt:tokio", "dev:proptest"],
            ),
            ("prombus-store", "store", &["tokio", "dev:prombus-store"]),
            ("prombus", "bus", &["prombus-store", "opt:prombus-log"]),
            (
                "prombus-tests",
                "tests",
                &["dev:prombus", "dev:prombus-log"],
            ),
        ]);
        assert_eq!(wrong_arrows(&good), Vec::<String>::new());
    }

    #[test]
    fn arrows_that_point_up_or_past_a_room_are_named() {
        let bad = house(&[
            ("prombus-log", "log", &["prombus"]),
            (
                "prombus-store",
                "store",
                &["prombus-log", "dev:prombus-log"],
            ),
            ("prombus", "bus", &["prombus-log", "prombus-store"]),
        ]);
        let expected = [
            "prombus-log may not use prombus",
            "prombus-store may not use prombus-log",
            "prombus-store may not use prombus-log in its tests",
            "prombus may not use prombus-log",
        ];
        assert_eq!(wrong_arrows(&bad), expected);
    }

    #[test]
    fn the_log_takes_no_other_library() {
        let bad = house(&[("prombus-log", "log", &["tokio"])]);
        assert_eq!(wrong_arrows(&bad), ["prombus-log may not use tokio"]);
    }

    #[test]
    fn an_unknown_crate_and_a_wrong_folder_are_named() {
        let bad = house(&[
            ("prombus-shed", "shed", &[]),
            ("prombus", "crates/bus", &[]),
        ]);
        let wrong = wrong_arrows(&bad);
        assert!(
            wrong[0].starts_with("prombus-shed has no room"),
            "{wrong:?}"
        );
        assert_eq!(wrong[1], "prombus belongs in bus/, not in crates/bus/");
    }
}
