//! Exact linearizability analyzers over integer columns. Only `python` and `transitions` depend on Python.

pub mod brute;
mod hash;
pub mod models;
pub mod near;
pub mod ops;
#[cfg(feature = "python")]
mod python;
pub mod search;
pub mod solve;
#[cfg(feature = "python")]
mod transitions;

#[cfg(test)]
mod tests;
