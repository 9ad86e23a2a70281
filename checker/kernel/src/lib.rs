//! Exact analyzers over columns: of linearizability, and of transactions. Only `answers`, `python`, `judging`,
//! `dividing`, `reading`, `texts` and `transitions` depend on Python.

#[cfg(feature = "python")]
mod answers;
pub mod brute;
#[cfg(feature = "python")]
mod dividing;
pub mod events;
mod hash;
#[cfg(feature = "python")]
mod judging;
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
mod texts;
pub mod transactions;
#[cfg(feature = "python")]
mod transitions;

#[cfg(test)]
mod tests;
