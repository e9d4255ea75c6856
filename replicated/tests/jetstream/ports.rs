//! Ports for servers that are stopped and started again. They are below those that systems give to connections: a port that a
//! system chose may be taken by a connection as soon as its server is away.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

/// Linux gives ports from 32768 on to connections, other systems from 49152 on.
const PORTS: std::ops::Range<u64> = 12_000..32_000;

/// Free ports, chosen at random because other tests choose at the same time.
pub(crate) fn free_ports(count: usize) -> Vec<u16> {
    let mut chosen = BTreeSet::new();
    while chosen.len() < count {
        let drawn = RandomState::new().hash_one(chosen.len());
        let port = (PORTS.start + drawn % (PORTS.end - PORTS.start)) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            chosen.insert(port);
        }
    }
    chosen.into_iter().collect()
}
