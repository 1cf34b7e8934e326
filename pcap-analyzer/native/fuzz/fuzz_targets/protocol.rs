//! The first byte picks the row of `PROTOCOLS`, the rest are its bytes: new rows are fuzzed unasked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pcapstat_core::message::Side;
use pcapstat_core::pipeline::decode;
use pcapstat_core::protocols::{Decoding, PROTOCOLS};

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let row = PROTOCOLS[usize::from(*first) % PROTOCOLS.len()];
    let from = if first & 0x80 == 0 { Side::Client } else { Side::Server };
    let _ = decode(row.decode_as, bytes, from, &Decoding::default());
});
