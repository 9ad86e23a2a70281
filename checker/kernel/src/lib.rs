//! Exact linearizability analyzers over integer columns. Only `python` and `transitions` depend on Python.

pub mod brute;
pub mod events;
mod hash;
pub mod models;
pub mod near;
pub mod ops;
#[cfg(feature = "python")]
mod python;
#[cfg(feature = "python")]
mod reading;
pub mod search;
pub mod solve;
#[cfg(feature = "python")]
mod transitions;

#[cfg(test)]
mod tests;
