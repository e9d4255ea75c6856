//! What the system knows of the process, in the names that every Prometheus client library uses. Only on Linux; elsewhere
//! there are none.

use super::text::{Labels, Text};
use std::fs;

/// Ticks of `/proc` in a second. Linux shows 100 to programs whatever the kernel uses.
const TICKS_PER_SEC: f64 = 100.0;
/// Positions in `/proc/self/stat` behind the name of the program.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const START_TICKS: usize = 19;

pub(super) fn render(text: &mut Text) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name may hold blanks and brackets.
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map(|(_, fields)| fields.split_whitespace().collect())
        .unwrap_or_default();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    if let Some((user, system)) = ticks(USER_TICKS).zip(ticks(SYSTEM_TICKS)) {
        let seconds = (user + system) / TICKS_PER_SEC;
        let name = "process_cpu_seconds_total";
        text.head(name, "counter", "User and system time of the process.");
        text.sample(&Labels::default(), seconds);
    }
    if let Some((start, boot)) = ticks(START_TICKS).zip(boot_seconds()) {
        let name = "process_start_time_seconds";
        text.head(name, "gauge", "Start time of the process since the epoch.");
        text.sample(&Labels::default(), boot + start / TICKS_PER_SEC);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for (name, field, unit, help) in [
        (
            "process_resident_memory_bytes",
            "VmRSS:",
            1_024,
            "Resident memory.",
        ),
        (
            "process_virtual_memory_bytes",
            "VmSize:",
            1_024,
            "Virtual memory.",
        ),
        ("process_threads", "Threads:", 1, "Threads of the process."),
    ] {
        if let Some(value) = field_of(&status, field) {
            text.head(name, "gauge", help);
            text.sample(&Labels::default(), value * unit);
        }
    }
    if let Ok(descriptors) = fs::read_dir("/proc/self/fd") {
        let name = "process_open_fds";
        text.head(name, "gauge", "Open file descriptors.");
        text.sample(&Labels::default(), descriptors.count());
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(limit) = field_of(&limits, "Max open files") {
        let name = "process_max_fds";
        text.head(name, "gauge", "Limit of open file descriptors.");
        text.sample(&Labels::default(), limit);
    }
}

/// The number behind a name at the beginning of a line.
fn field_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn boot_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    field_of(&stat, "btime ").map(|seconds| seconds as f64)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_described() {
        let mut text = Text::new();
        render(&mut text);
        let text = text.finish();
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let value = line.unwrap_or_else(|| panic!("{name} is missing in {text}"));
            value.trim().parse().unwrap()
        };
        assert!(value("process_cpu_seconds_total") >= 0.0);
        // After 2020.
        assert!(value("process_start_time_seconds") > 1_577_836_800.0);
        assert!(value("process_resident_memory_bytes") > 100_000.0);
        assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
        assert!(value("process_threads") >= 1.0);
        assert!(value("process_open_fds") >= 3.0);
        assert!(value("process_max_fds") >= value("process_open_fds"));
    }
}
