//! What a publisher said on the wire, as the bus takes it.

use prombus::PublishOptions;
use prombus_api::options::PublishOptions as Said;

pub(crate) fn as_said<'a>(said: &'a Said<'_>) -> PublishOptions<'a> {
    PublishOptions {
        id: said.id.as_deref(),
        ts: said.ts,
        key: said.key.as_deref(),
        headers: &said.headers,
        tags: &said.tags,
        caused_by: &said.caused_by,
        sid: said.sid.as_deref(),
    }
}
