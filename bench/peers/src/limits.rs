//! What the machine itself allows, beside which the figures are to be read: writing and syncing the same sizes, the
//! loopback interface, and copying in memory.

use super::figures::Figures;
use super::payload::{PAYLOAD_BYTES, Payload};
use super::rows::Metric;
use super::scale::PeerScale;
use crate::folder::{Folder, remove};
use crate::{Outcome, log_progress};
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// The row that the limits are in.
pub(crate) const ROW: &str = "limits";
const GROUP_SIZES: [(usize, Metric); 3] = [
    (1, synced("write and fdatasync, 1 at a time")),
    (100, synced("write and fdatasync, 100 at a time")),
    (1_000, synced("write and fdatasync, 1,000 at a time")),
];
const LOOPBACK: Metric = Metric {
    name: "loopback",
    unit: "MB/s",
    is_lower_better: false,
};
const PING_PONG: Metric = Metric {
    name: "loopback ping-pong",
    unit: "µs",
    is_lower_better: true,
};
const MEMCPY: Metric = Metric {
    name: "memcpy",
    unit: "MB/s",
    is_lower_better: false,
};
pub(crate) const MACHINE: &str = "machine";
/// What one write carries through the loopback interface.
const BLOCK_BYTES: usize = 256 << 10;
/// Larger than the caches.
const COPIED_BYTES: usize = 64 << 20;

const fn synced(name: &'static str) -> Metric {
    Metric {
        name,
        unit: "msgs/s",
        is_lower_better: false,
    }
}

/// Measures all limits as often as the rows.
pub(crate) fn measure(
    scale: &PeerScale,
    folder: &mut Folder,
    figures: &mut Figures,
) -> Outcome<()> {
    let begun = Instant::now();
    for _ in 0..scale.repeats {
        for (size, metric) in GROUP_SIZES {
            let path = folder.fresh("synced");
            let rate = write_and_sync(&path, size, scale.publish_time)?;
            remove(&path)?;
            figures.add(ROW, MACHINE, &[metric], &[rate])?;
        }
        figures.add(
            ROW,
            MACHINE,
            &[LOOPBACK],
            &[loopback(scale.publish_time)? / 1e6],
        )?;
        figures.add(
            ROW,
            MACHINE,
            &[PING_PONG],
            &[ping_pong(scale.publish_time)?],
        )?;
        figures.add(ROW, MACHINE, &[MEMCPY], &[copy(scale.publish_time) / 1e6])?;
    }
    log_progress(&format!(
        "the limits took {:.1} s",
        begun.elapsed().as_secs_f64()
    ));
    Ok(())
}

/// Events a second.
fn write_and_sync(path: &Path, size: usize, time: Duration) -> Outcome<f64> {
    let block = Payload::new(0, 0).as_str().repeat(size);
    let mut file = File::create_new(path)?;
    let mut events = 0;
    let begun = Instant::now();
    while begun.elapsed() < time {
        file.write_all(block.as_bytes())?;
        file.sync_data()?;
        events += size;
    }
    Ok(events as f64 / begun.elapsed().as_secs_f64())
}

/// Bytes a second through one connection.
fn loopback(time: Duration) -> Outcome<f64> {
    let (mut near, mut far) = connected()?;
    let writer = std::thread::spawn(move || -> std::io::Result<()> {
        let block = vec![1; BLOCK_BYTES];
        let until = Instant::now() + time;
        while Instant::now() < until {
            near.write_all(&block)?;
        }
        Ok(())
    });
    let mut block = vec![0; BLOCK_BYTES];
    let mut bytes = 0;
    let begun = Instant::now();
    loop {
        match far.read(&mut block)? {
            0 => break,
            count => bytes += count,
        }
    }
    let rate = bytes as f64 / begun.elapsed().as_secs_f64();
    writer.join().map_err(|_| "the writer ended badly")??;
    Ok(rate)
}

/// Microseconds there and back, with a payload each way.
fn ping_pong(time: Duration) -> Outcome<f64> {
    let (mut near, mut far) = connected()?;
    let echo = std::thread::spawn(move || -> std::io::Result<()> {
        let mut message = [0; PAYLOAD_BYTES];
        while far.read_exact(&mut message).is_ok() {
            far.write_all(&message)?;
        }
        Ok(())
    });
    let mut message = [1; PAYLOAD_BYTES];
    let mut rounds = 0;
    let begun = Instant::now();
    while begun.elapsed() < time {
        near.write_all(&message)?;
        near.read_exact(&mut message)?;
        rounds += 1;
    }
    let micros = begun.elapsed().as_secs_f64() * 1e6 / f64::from(rounds.max(1));
    drop(near);
    echo.join().map_err(|_| "the echo ended badly")??;
    Ok(micros)
}

/// Bytes a second that are copied in memory.
fn copy(time: Duration) -> f64 {
    let source = vec![1_u8; COPIED_BYTES];
    let mut target = vec![0_u8; COPIED_BYTES];
    let mut bytes = 0;
    let begun = Instant::now();
    while begun.elapsed() < time {
        black_box(&mut target).copy_from_slice(black_box(&source));
        bytes += COPIED_BYTES;
    }
    bytes as f64 / begun.elapsed().as_secs_f64()
}

fn connected() -> Outcome<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_comes_to_something() {
        let parent = tempfile::tempdir().unwrap();
        let mut folder = Folder::make(Some(parent.path()), 1).unwrap();
        let mut scale = PeerScale::quick();
        scale.publish_time = Duration::from_millis(10);
        let mut figures = Figures::default();
        measure(&scale, &mut folder, &mut figures).unwrap();
        assert_eq!(figures.list().len(), GROUP_SIZES.len() + 3);
        assert!(
            figures
                .list()
                .iter()
                .all(|figure| figure.runs.lowest() > 0.0)
        );
    }
}
