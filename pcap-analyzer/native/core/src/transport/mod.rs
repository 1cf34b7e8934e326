//! Puts bytes in order and says what is missing: streams by their endpoints, TCP segments by their sequence numbers.

mod reassembly;
mod streams;

pub use reassembly::{distance, Acknowledged, Delivery, Reassembly, Teller};
pub use streams::{Seat, StreamTable};
