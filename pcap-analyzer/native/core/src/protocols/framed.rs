//! Messages of an application of one's own over plain TCP, framed as the user says: all of one length, or each ended by a delimiter.
//!
//! Byte columns: the delimiter is header, all else payload.

use super::{Carrier, Decoder, Decoding, Input, Likely, Malformed, Pairing, Protocol, Step};
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
    decoder: |decoding: &Decoding| Box::new(Framed { framing: decoding.framing, scanned: [0; 2] }),
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

/// Longest message whose delimiter is waited for.
const MOST_MESSAGE: usize = 1 << 24;

struct Framed {
    framing: Framing,
    /// Bytes of what each side began in which no delimiter begins.
    scanned: [usize; 2],
}

impl Decoder for Framed {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let Some(scanned) = self.scanned.get_mut(from.index()) else { return Step::NeedMore { at_least: input.wire_bytes + 1 } };
        let (len, delimiter) = match self.framing {
            Framing::Unknown => (input.wire_bytes, 0),
            Framing::Length(len) => (len, 0),
            Framing::Delimiter(bytes, count) => {
                let delimiter = bytes.get(..count).unwrap_or(&[]);
                let rest = input.bytes.get(*scanned..).unwrap_or(&[]);
                let found = rest.windows(count.max(1)).position(|window| window == delimiter);
                match found {
                    Some(at) => (*scanned + at + count, count),
                    None if input.bytes.len() < input.wire_bytes => (input.wire_bytes, 0),
                    None if input.bytes.len() > MOST_MESSAGE => {
                        *scanned = 0;
                        let why = Malformed { offset: 0, field: "no delimiter comes", section: "" };
                        return Step::Malformed { len: input.wire_bytes, why };
                    }
                    None => {
                        *scanned = (input.bytes.len() + 1).saturating_sub(count);
                        return Step::NeedMore { at_least: input.wire_bytes + 1 };
                    }
                }
            }
        };
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        *scanned = 0;
        let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        message.row.kind = "Message";
        message.row.header_bytes = number(delimiter);
        message.row.payload_bytes = number(len - delimiter);
        message.payload_range = 0..(len - delimiter).min(input.bytes.len());
        message.facts.version = Some("TCP");
        message.facts.is_opening = true;
        Step::Message { len }
    }

    fn gap(&mut self, from: Side) {
        self.scanned.get_mut(from.index()).into_iter().for_each(|scanned| *scanned = 0);
    }

    /// The next delimiter tells again where messages end; a length does not.
    fn is_boundary(&self, _: &[u8], _: Side) -> Option<bool> {
        Some(!matches!(self.framing, Framing::Length(_)))
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
        Framed { framing, scanned: [0; 2] }.next(Input::whole(bytes), Side::Client, &mut Message::default())
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

    #[test]
    fn a_message_without_a_delimiter_is_given_up() {
        let endless = vec![b'x'; MOST_MESSAGE + 1];
        let answer = cut(Framing::delimiter(b"\n").unwrap_or_default(), &endless);

        assert!(matches!(answer, Step::Malformed { len, .. } if len == endless.len()));
    }

    #[test]
    fn a_delimiter_may_come_in_pieces() {
        let mut framed = Framed { framing: Framing::delimiter(b"\r\n").unwrap_or_default(), scanned: [0; 2] };
        let mut next = |bytes| framed.next(Input::whole(bytes), Side::Client, &mut Message::default());

        assert_eq!([Step::NeedMore { at_least: 4 }, Step::NeedMore { at_least: 6 }], [next(b"ab\r"), next(b"ab\rc\r")]);
        assert_eq!([Step::Message { len: 6 }, Step::Message { len: 2 }], [next(b"ab\rc\r\n"), next(b"\r\nabc\r\n")]);
    }
}
