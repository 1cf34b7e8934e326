//! What every row of `PROTOCOLS` owes, whatever it decodes: three answers, parts that add up, the same again, and streams that do not depend on
//! how they were cut into segments.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

use pcapstat_core::message::{Message, Side};
use pcapstat_core::packet::Headers;
use pcapstat_core::protocols::framing::{Cutter, Half, Receiver, Remainder};
use pcapstat_core::protocols::{Carrier, Decoding, Input, Protocol, Step, PROTOCOLS};
use pcapstat_core::span::Origin;
use proptest::prelude::*;

/// Starts that get random bytes past the first look of a decoder.
const SEEDS: &[&[u8]] = &[
    b"\x10\x10\0\x04MQTT\x05\x02\0\x3c\0\0\x03abc\x32\x0e\0\x03a/b\0\x01\x03\x23\0\x01one\x40\x02\0\x01",
    b"\x44\x01\x7d\x34\x01\x02\x03\x04\xbbtemperature\x60\xff22.3 C",
    b"\x30\xe1\x22\x04\x80\x21\x01\x20\xb1a",
    b"\x16\x03\x01\0\x2f\x01\0\0\x2b\x03\x03",
    b"\x16\xfe\xfd\0\0\0\0\0\0\0\0\0\x0d\x01\0\0\x01\0\0\0\0\0\0\0\x01\x01",
];

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let random = proptest::collection::vec(any::<u8>(), 0..120);
    let changed =
        (0..SEEDS.len(), proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4), proptest::collection::vec(any::<u8>(), 0..60))
            .prop_map(|(seed, changes, more)| {
                let mut bytes = [SEEDS[seed], &more].concat();
                for (at, value) in changes {
                    let at = at % bytes.len();
                    bytes[at] = value;
                }
                bytes
            });
    prop_oneof![random, changed]
}

#[derive(Default)]
struct Seen {
    messages: Vec<(&'static str, &'static str, u32)>,
    bytes: u64,
}

impl Receiver for Seen {
    fn message(&mut self, message: &mut Message, _: Side, _: &[u8]) {
        self.messages.push((message.kind, message.variant, message.frame_bytes));
        self.bytes += u64::from(message.frame_bytes);
    }

    fn unassigned(&mut self, remainder: &Remainder, _: Side) {
        self.bytes += remainder.bytes;
    }
}

fn cut(protocol: &Protocol, bytes: &[u8], segment: usize) -> Seen {
    let (mut decoder, mut message, mut half, mut seen) =
        ((protocol.decoder)(&Decoding::default()), Message::default(), Half::default(), Seen::default());
    for (number, chunk) in bytes.chunks(segment).enumerate() {
        let frame = number as u64 + 1;
        let total = u32::try_from(chunk.len()).unwrap();
        let (time_ns, headers) = (0, Headers::default());
        let origin =
            Origin { frame, frame_first: frame, time_ns, time_first_ns: time_ns, headers, payload_bytes: total, ..Origin::default() };
        let piece = origin.whole();
        let mut cutter = Cutter {
            decoder: &mut decoder,
            message: &mut message,
            from: Side::Client,
            now: (frame, 0),
            is_behind_gap: false,
            keep_bytes: 1 << 20,
            wants_frames: true,
            earlier_frames: &[],
        };
        half.chunk(&mut cutter, piece, chunk, &mut seen);
    }
    half.finish(Side::Client, &mut seen);
    seen
}

fn check_answer(protocol: &Protocol, input: Input<'_>) -> Result<(), TestCaseError> {
    let mut message = Message { wants_text: true, ..Message::default() };
    match (protocol.decoder)(&Decoding::default()).next(input, Side::Client, &mut message) {
        Step::Message { len } => {
            let row = &message.row;
            prop_assert!(len > 0 && len <= input.wire_bytes, "{} {len}", protocol.decode_as);
            let sum = row.security_bytes + row.header_bytes + row.option_bytes + row.payload_bytes + row.opaque_bytes;
            prop_assert_eq!(len, sum as usize, "{}", protocol.decode_as);
        }
        Step::NeedMore { at_least } => prop_assert!(at_least > input.bytes.len(), "{} {at_least}", protocol.decode_as),
        Step::Malformed { len, .. } => prop_assert!(len > 0 && len <= input.wire_bytes.max(1), "{} {len}", protocol.decode_as),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_decoder_gives_one_of_three_answers(bytes in bytes(), missing in 0usize..40) {
        for protocol in PROTOCOLS.iter().filter(|_| !bytes.is_empty()) {
            check_answer(protocol, Input { bytes: &bytes, wire_bytes: bytes.len() + missing })?;
            let _ = (protocol.probe)(&bytes);
            let _ = (protocol.decoder)(&Decoding::default()).is_boundary(&bytes, Side::Server);
        }
    }

    #[test]
    fn a_stream_does_not_depend_on_its_segments(bytes in bytes(), segment in 1usize..20) {
        for protocol in PROTOCOLS.iter().filter(|protocol| protocol.carrier == Carrier::Stream) {
            let whole = cut(protocol, &bytes, bytes.len().max(1));
            let parts = cut(protocol, &bytes, segment);
            prop_assert_eq!(whole.bytes, bytes.len() as u64, "{}", protocol.decode_as);
            prop_assert_eq!(parts.bytes, bytes.len() as u64, "{}", protocol.decode_as);
        }
    }
}

#[test]
fn whole_messages_are_the_same_byte_by_byte() {
    let mqtt = PROTOCOLS.iter().find(|protocol| protocol.decode_as == "mqtt").unwrap();
    let whole = cut(mqtt, SEEDS[0], SEEDS[0].len());

    assert_eq!(3, whole.messages.len());
    for segment in 1..SEEDS[0].len() {
        assert_eq!(whole.messages, cut(mqtt, SEEDS[0], segment).messages);
    }
}

#[test]
fn a_frame_that_began_like_a_head_takes_none_of_those_behind_it() {
    let websocket = PROTOCOLS.iter().find(|protocol| protocol.decode_as == "websocket").unwrap();
    // RFC 6455 §5.2: "A ", as HTTP/1 begins a request line, is a first fragment of 32 bytes; the end of the line shows that it is none
    let bytes = [&b"A "[..], &[0; 32], &[0, 0], b"\x80\x03en\n"].concat();

    assert_eq!(vec![34, 2, 5], cut(websocket, &bytes, bytes.len()).messages.iter().map(|message| message.2).collect::<Vec<_>>());
    for segment in 1..bytes.len() {
        assert_eq!(cut(websocket, &bytes, bytes.len()).messages, cut(websocket, &bytes, segment).messages, "{segment}");
    }
}

#[test]
fn every_row_names_its_standards_and_columns_that_exist() {
    let columns: Vec<&str> = pcapstat_core::schema::messages::TABLE.columns.iter().map(|column| column.name).collect();
    for protocol in PROTOCOLS {
        assert!(!protocol.standards.is_empty(), "{}", protocol.decode_as);
        for (_, column) in protocol.wireshark {
            assert!(columns.contains(column), "{} {column}", protocol.decode_as);
        }
    }
}
