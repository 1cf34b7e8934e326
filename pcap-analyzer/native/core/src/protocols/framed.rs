//! Messages of an application of one's own over plain TCP, framed as the user says: all of one length, or each ended by a delimiter.
//!
//! Byte columns: the delimiter is header, all else payload.

use super::{Carrier, Decoder, Decoding, Input, Likely, Pairing, Protocol, Step};
use crate::exchanges::{Exchanges, Moment, Placement};
use crate::message::{Message, Side};

/// Framed messages; "tcp" is Wireshark's name for bytes that it leaves to TCP.
pub const FRAMED: Protocol = Protocol {
    name: "tcp",
    decode_as: "framed",
    standards: &["RFC 9293"],
    carrier: Carrier::Stream,
    is_security: false,
    carries: None,
    ports: &[],
    probe: |_| Likely::No,
    connection_id: None,
    decoder: |decoding: &Decoding| Box::new(Framed(decoding.framing)),
    pairing: || Box::new(Alone),
    wireshark: &[],
};

/// How the user says that messages are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// Nothing was said: what came together is a message.
    #[default]
    Unknown,
    /// So many bytes each.
    Length(usize),
    /// These bytes, of which so many count, end each.
    Delimiter([u8; Self::MOST], usize),
}

impl Framing {
    /// Longest delimiter.
    pub const MOST: usize = 8;

    /// Messages that end with `delimiter`; none where that is empty or too long.
    #[must_use]
    pub fn delimiter(delimiter: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MOST];
        bytes.get_mut(..delimiter.len()).filter(|bytes| !bytes.is_empty())?.copy_from_slice(delimiter);
        Some(Self::Delimiter(bytes, delimiter.len()))
    }
}

struct Framed(Framing);

impl Decoder for Framed {
    fn next(&mut self, input: Input<'_>, _: Side, message: &mut Message) -> Step {
        let (len, delimiter) = match self.0 {
            Framing::Unknown => (input.wire_bytes, 0),
            Framing::Length(len) => (len, 0),
            Framing::Delimiter(bytes, count) => {
                let delimiter = bytes.get(..count).unwrap_or(&[]);
                let found = input.bytes.windows(count.max(1)).position(|window| window == delimiter);
                match found {
                    Some(at) => (at + count, count),
                    None if input.bytes.len() < input.wire_bytes => (input.wire_bytes, 0),
                    None => return Step::NeedMore { at_least: input.wire_bytes + 1 },
                }
            }
        };
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        message.row.kind = "Message";
        message.row.header_bytes = number(delimiter);
        message.row.payload_bytes = number(len - delimiter);
        message.payload_range = 0..(len - delimiter).min(input.bytes.len());
        message.facts.version = Some("TCP");
        message.facts.is_opening = true;
        Step::Message { len }
    }
}

/// Each message stands alone: which of them answer others is the application's secret.
struct Alone;

impl Pairing for Alone {
    fn place(&mut self, message: &Message, _: Side, _: &Moment, _: &mut Exchanges) -> Placement {
        Placement { is_data: message.payload_bytes > 0, ..Placement::default() }
    }

    fn end(&mut self, _: &mut Exchanges) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(framing: Framing, bytes: &[u8]) -> Step {
        Framed(framing).next(Input::whole(bytes), Side::Client, &mut Message::default())
    }

    #[test]
    fn messages_end_by_length_or_delimiter() {
        let lines = Framing::delimiter(b"\r\n").unwrap_or_default();

        assert_eq!(Step::Message { len: 4 }, cut(Framing::Length(4), b"abcdef"));
        assert_eq!(Step::NeedMore { at_least: 4 }, cut(Framing::Length(4), b"abc"));
        assert_eq!(Step::Message { len: 5 }, cut(lines, b"abc\r\ndef"));
        assert_eq!(Step::NeedMore { at_least: 5 }, cut(lines, b"abc\r"));
        assert_eq!((None, None), (Framing::delimiter(b""), Framing::delimiter(b"123456789")));
    }
}
