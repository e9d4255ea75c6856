//! Options of groups on the wire, as the bus takes them.

use crate::denied::Denied;
use prombus::{FieldFilter, Filter, Ordering, Pattern};
use prombus_api::{Code, options};

pub(crate) fn to_bus_ordering(ordering: options::Ordering) -> Ordering {
    match ordering {
        options::Ordering::None => Ordering::None,
        options::Ordering::Key => Ordering::Key,
    }
}

pub(crate) fn to_bus_filter(filter: &options::Filter) -> Result<Filter, Denied> {
    let key = filter.key.as_deref().map(Pattern::new).transpose();
    let key = key.map_err(|error| Denied::new(Code::BadFrame, format!("filter.key: {error}")))?;
    Ok(Filter::Fields(FieldFilter {
        key,
        headers: filter.headers.clone(),
        tags: filter.tags.clone(),
    }))
}
