//! The house rules that a machine can check. Each rule is a pure function from what the repository holds to the
//! sentences that say what is wrong, tested on a bad example, and then run on the repository itself.

#![cfg(test)]

mod arrows;
mod channels;
mod heads;
mod ignored;
mod leftovers;
mod length;
mod machine_paths;
mod manifests;
mod names;
mod root;
mod tree;
mod workspace;
