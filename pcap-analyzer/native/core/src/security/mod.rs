//! What (D)TLS record protection costs, by protocol version and cipher suite, without keys.

pub mod cipher_suites;
pub mod records;

pub use cipher_suites::CipherSuite;
pub use records::{Agreement, Protection, Version};
