//! Query strings and bodies of HTTP requests. Whatever comes, reading them ends, panics nowhere, and what was
//! understood means the same when it is written and read again.
#![no_main]
#![allow(
    clippy::expect_used,
    reason = "a broken promise has to stop the fuzzer"
)]

use libfuzzer_sys::fuzz_target;
use prombus_api::http::{
    Body, ExportQuery, GroupQuery, ListQuery, Pull, Query, ReadQuery, Redrive, Seek, TopicConfig,
    publish_query,
};
use std::fmt::Debug;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(query) = Query::parse(text)
    {
        check_query(&query, ReadQuery::parse, ReadQuery::to_query);
        check_query(&query, ExportQuery::parse, ExportQuery::to_query);
        check_query(&query, GroupQuery::parse, GroupQuery::to_query);
        check_query(&query, ListQuery::parse, ListQuery::to_query);
        drop(publish_query(&query));
    }
    check_body::<Seek>(bytes);
    check_body::<Pull>(bytes);
    check_body::<TopicConfig>(bytes);
    // A redrive may carry a payload that is no JSON, which the bus refuses later.
    drop(Redrive::parse(bytes));
});

fn check_query<T: PartialEq + Debug, E: Debug>(
    query: &Query<'_>,
    parse: impl Fn(&Query<'_>) -> Result<T, E>,
    write: impl Fn(&T) -> String,
) {
    if let Ok(parsed) = parse(query) {
        let text = write(&parsed);
        let again = Query::parse(&text).expect("what was written is a query");
        assert_eq!(parse(&again).expect("it is read"), parsed, "{text}");
    }
}

fn check_body<T>(bytes: &[u8])
where
    T: for<'a> Body<'a> + PartialEq + Debug,
{
    if let Ok(parsed) = T::parse(bytes) {
        let json = parsed.to_json();
        assert_eq!(T::parse(&json).as_ref(), Ok(&parsed), "{json:?}");
    }
}
