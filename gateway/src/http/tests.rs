//! The table of routes against the OpenAPI document.

use super::call::PathNames;
use super::{ROUTES, find};
use prombus_api::openapi::document;
use std::collections::BTreeSet;

#[test]
fn what_is_served_is_documented_and_the_other_way_round() {
    let served: BTreeSet<(String, String)> = ROUTES
        .iter()
        .flat_map(|route| {
            let methods = route.methods.iter();
            methods.map(|(method, _)| (route.path.to_owned(), method.as_str().to_lowercase()))
        })
        .collect();
    let document = document();
    let paths = document["paths"].as_object().expect("paths");
    let documented: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, operations)| {
            let methods = operations.as_object().expect("operations").keys();
            methods.map(|method| (path.clone(), method.clone()))
        })
        .collect();
    assert_eq!(served, documented);
}

#[test]
fn paths_lead_to_their_routes() {
    for (path, expected, topic, key) in [
        ("/snap/a.b/k", "/snap/{topic}/{key}", Some("a.b"), Some("k")),
        ("/snap/a/", "/snap/{topic}/{key}", Some("a"), Some("")),
        (
            "/snap/a/k/l//m",
            "/snap/{topic}/{key}",
            Some("a"),
            Some("k/l//m"),
        ),
        ("/list/a", "/list/{topic}", Some("a"), None),
        ("/topics", "/topics", None, None),
        ("/topics/a.b", "/topics/{topic}", Some("a.b"), None),
        ("/topics/a/purge", "/topics/{topic}/purge", Some("a"), None),
        ("/topics/purge", "/topics/{topic}", Some("purge"), None),
        ("/publish", "/publish", None, None),
        ("/publish/a%2Eb", "/publish/{topic}", Some("a%2Eb"), None),
    ] {
        let (route, found) = find(path).expect(path);
        let names = PathNames { topic, key };
        assert_eq!((route.path, found), (expected, names), "{path}");
    }
    for path in [
        "",
        "/",
        "/topics/",
        "/topics/a/",
        "/topics/a/b",
        "/publish/",
        "/snap/a",
        "/snap//k",
        "/list/a/b",
        "/nowhere",
        "/Topics",
    ] {
        assert!(find(path).is_none(), "{path}");
    }
}
