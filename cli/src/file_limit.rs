//! How many files and sockets the process may open: each connection takes one descriptor, and the usual soft limit of
//! 1,024 is below what the machine allows.

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for the most connections that the configuration can be expected to ask for; beyond it a high limit only
/// makes programs slow that close all descriptors when they start another.
#[cfg(unix)]
const WANTED: u64 = 1 << 20;

/// There is no such limit.
#[cfg(not(unix))]
pub(crate) fn raise() {}

/// Raises the soft limit as far as the hard one allows. Where that fails the server starts with what it has.
#[cfg(unix)]
pub(crate) fn raise() {
    let limits = getrlimit(Resource::Nofile);
    let allowed = limits.maximum.unwrap_or(WANTED).min(WANTED);
    if limits.current.is_none_or(|current| current >= allowed) {
        return;
    }
    let raised = Rlimit {
        current: Some(allowed),
        maximum: limits.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_rises_to_the_hard_one() {
        let before = getrlimit(Resource::Nofile);
        let low = Rlimit {
            current: Some(256),
            maximum: before.maximum,
        };
        setrlimit(Resource::Nofile, low).unwrap();
        raise();
        let allowed = before.maximum.unwrap_or(WANTED).min(WANTED);
        assert_eq!(getrlimit(Resource::Nofile).current, Some(allowed));
    }
}
