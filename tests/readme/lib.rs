//! The programs of the README, compiled and run by `make doctest`, so that they cannot rot.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
