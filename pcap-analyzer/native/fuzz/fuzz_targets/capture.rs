//! A capture file of any bytes, read through all rooms: formats, link to transport, protocols, sums.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pcapstat_core::capture::Input;
use pcapstat_core::pipeline::{run, NoRows, Options};

fuzz_target!(|data: &[u8]| {
    let input = Input::Stream("fuzz".to_owned(), Box::new(std::io::Cursor::new(data.to_vec())));
    let options = Options { wants_messages: true, wants_exchanges: true, ..Options::default() };
    let _ = run(vec![input], &options, &mut NoRows);
});
