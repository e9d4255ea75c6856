//! Flipped bits and cut files, everywhere in small logs: all is there, or what is missing is reported, and nothing is
//! ever different, and nothing panics.

mod examine;
mod image;

use examine::{Way, examine, read_one_way};
use image::Image;
use prombus_log::Files;

/// Every so many bytes all eight bits are flipped, elsewhere one.
const ALL_BITS_EVERY: usize = 31;
/// So many of the zeros behind what is used are looked at one by one, and then every so many.
const ZEROS_NEAR: usize = 100;
const ZEROS_STEP: usize = 997;

#[test]
fn flips_in_a_closed_log_of_one_segment() {
    flip_everywhere(&Image::of_one_segment().closed(), |_| true);
}

#[test]
fn flips_in_a_crashed_log_of_one_segment() {
    flip_everywhere(&Image::of_one_segment().crashed(), |_| true);
}

#[test]
fn flips_in_sealed_data_of_a_closed_log() {
    flip_everywhere(&Image::of_sealed_segments().closed(), is_data);
}

#[test]
fn flips_in_indexes_and_marks_of_a_closed_log() {
    flip_everywhere(&Image::of_sealed_segments().closed(), |name| !is_data(name));
}

#[test]
fn flips_in_data_of_a_crashed_log() {
    flip_everywhere(&Image::of_sealed_segments().crashed(), is_data);
}

#[test]
fn flips_in_a_crashed_log_where_nothing_was_sealed() {
    flip_everywhere(&Image::of_unsealed_segments().crashed(), |_| true);
}

#[test]
fn flips_in_a_closed_log_where_nothing_was_sealed() {
    flip_everywhere(&Image::of_unsealed_segments().closed(), |_| true);
}

#[test]
fn cuts_in_a_log_of_one_segment() {
    cut_everywhere(&Image::of_one_segment().closed());
    cut_everywhere(&Image::of_one_segment().crashed());
}

#[test]
fn cuts_in_a_closed_log_with_sealed_segments() {
    cut_everywhere(&Image::of_sealed_segments().closed());
}

#[test]
fn cuts_in_a_crashed_log_with_sealed_segments() {
    cut_everywhere(&Image::of_sealed_segments().crashed());
}

#[test]
fn cuts_in_a_log_where_nothing_was_sealed() {
    cut_everywhere(&Image::of_unsealed_segments().closed());
    cut_everywhere(&Image::of_unsealed_segments().crashed());
}

#[test]
fn flips_in_a_crashed_log_whose_state_is_only_in_its_checkpoint() {
    flip_everywhere(&Image::of_a_checkpoint().crashed(), |_| true);
}

#[test]
fn cuts_in_a_crashed_log_whose_state_is_only_in_its_checkpoint() {
    cut_everywhere(&Image::of_a_checkpoint().crashed());
}

/// Whoever gets less than there was must be able to learn why, whichever way it read.
#[test]
fn damage_is_told_by_every_way_of_reading() {
    let image = Image::of_sealed_segments().closed();
    let names = image.disk.list().expect("names");
    for name in names.iter().filter(|name| is_data(name)) {
        let bytes = image.disk.bytes_of(name).expect("a file").len();
        for at in (0..bytes).step_by(3) {
            for way in Way::ALL {
                read_one_way(&image, name, at, way);
            }
        }
    }
}

fn is_data(name: &str) -> bool {
    name.ends_with(".seg")
}

/// Every byte of a file, but few of the zeros at its end, which are all alike.
fn places(image: &Image, name: &str) -> impl Iterator<Item = usize> {
    let bytes = image.disk.bytes_of(name).expect("a file");
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap_or(0);
    let near = bytes.len().min(used + ZEROS_NEAR);
    (0..near).chain((near..bytes.len()).step_by(ZEROS_STEP))
}

fn flip_everywhere(image: &Image, wanted: impl Fn(&str) -> bool) {
    let names = image.disk.list().expect("names");
    for name in names.iter().filter(|name| wanted(name)) {
        for at in places(image, name) {
            let bits = match at % ALL_BITS_EVERY {
                0 => 0..8,
                _ => at % 8..at % 8 + 1,
            };
            for bit in bits {
                examine(image, name, &format!("bit {bit} of byte {at}"), |bytes| {
                    bytes[at] ^= 1 << bit;
                });
            }
        }
    }
}

fn cut_everywhere(image: &Image) {
    for name in &image.disk.list().expect("names") {
        let bytes = image.disk.bytes_of(name).expect("a file").len();
        for at in places(image, name) {
            examine(image, name, &format!("cut at {at} of {bytes}"), |bytes| {
                bytes.truncate(at);
            });
        }
    }
}
