//! The programs of the README and of other papers, compiled and run by `make doctest`, so that they cannot rot.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../docs/projectors.md")]
struct Projectors;
