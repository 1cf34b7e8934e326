//! CoAP over TCP (RFC 8323): CoAP's options and codes behind a length, without types and message IDs.

use super::coap::{divide, is_known, is_request, read_options, variant, OptionFault, Talk};
use super::{Carrier, Decoder, Input, Likely, Malformed, Port, Protocol, Step};
use crate::bytes::{Cursor, Short};
use crate::message::{Message, Side, Token};

/// CoAP in a byte stream.
pub const COAP_TCP: Protocol = Protocol {
    name: "coap",
    decode_as: "coap_tcp",
    standards: &["RFC 8323"],
    carrier: Carrier::Stream,
    is_security: false,
    carries: None,
    ports: &[Port::Tcp(5683), Port::Tls(5684)],
    probe,
    connection_id: None,
    decoder: |_| Box::new(CoapTcp { is_framed: false }),
    pairing: || Box::<Talk>::default(),
    wireshark: &[],
};

/// CoAP in the frames of a WebSocket (RFC 8323 §4): the frame tells the length, and Len is 0.
pub const COAP_WS: Protocol = Protocol {
    name: "coap",
    decode_as: "coap_ws",
    standards: &["RFC 8323"],
    carrier: Carrier::Datagram,
    is_security: false,
    carries: None,
    ports: &[],
    probe: |_| Likely::No,
    connection_id: None,
    decoder: |_| Box::new(CoapTcp { is_framed: true }),
    pairing: || Box::<Talk>::default(),
    wireshark: &[],
};

/// Signaling messages (RFC 8323 §5).
const SIGNALS: [&str; 5] = ["CSM", "Ping", "Pong", "Release", "Abort"];
/// The code of CSM, 7.01; the others follow.
const CSM: u8 = 225;
/// Messages longer than this are not taken for the start of one while a boundary is looked for.
const LIKELY_BYTES: usize = 1 << 20;

struct CoapTcp {
    is_framed: bool,
}

/// RFC 8323 §3.2, Figure 4.
#[derive(Debug, Clone, Copy)]
struct Header {
    code: u8,
    token: Token,
    bytes: usize,
    rest: usize,
}

/// Len and TKL, the extended length, code and token.
fn header(bytes: &[u8]) -> Result<Header, Short> {
    let mut cursor = Cursor::new(bytes);
    let first = cursor.u8()?;
    let rest = match first >> 4 {
        13 => u32::from(cursor.u8()?) + 13,
        14 => u32::from(cursor.u16()?) + 269,
        15 => cursor.u32()?.saturating_add(65_805),
        short => short.into(),
    };
    let code = cursor.u8()?;
    let token = Token::new(cursor.take((first & 0x0f).into())?);
    Ok(Header { code, token, bytes: cursor.offset(), rest: rest as usize })
}

impl Decoder for CoapTcp {
    fn next(&mut self, input: Input<'_>, _: Side, message: &mut Message) -> Step {
        if input.bytes.first().is_some_and(|first| first & 0x0f > 8) {
            return malformed(0, "token length is reserved", input.wire_bytes);
        }
        let head = match header(input.bytes) {
            Ok(head) => head,
            Err(short) => return Step::NeedMore { at_least: short.needed.max(2) },
        };
        let len = if self.is_framed { input.wire_bytes } else { head.bytes + head.rest };
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        name(&head, message);
        if self.is_framed {
            message.facts.version = Some("CoAP over WebSockets");
        }
        let bytes = input.bytes.get(..len).unwrap_or(input.bytes);
        body(&head, bytes, len, message)
    }

    fn is_boundary(&self, bytes: &[u8], _: Side) -> bool {
        header(bytes).is_ok_and(|head| head.bytes + head.rest < LIKELY_BYTES && head.code > 0 && is_known(head.code))
            && probe(bytes) != Likely::No
    }
}

const fn malformed(offset: usize, field: &'static str, len: usize) -> Step {
    Step::Malformed { len, why: Malformed { offset, field, section: "RFC 8323 §3.2" } }
}

fn name(head: &Header, message: &mut Message) {
    message.token = head.token;
    message.facts.version = Some("CoAP over TCP");
    message.facts.is_opening = is_request(head.code);
    message.row.code = Some(head.code);
    message.row.variant = variant(head.code);
    let signal = head.code.checked_sub(CSM).and_then(|number| SIGNALS.get(usize::from(number)));
    message.row.kind = match signal {
        Some(signal) => signal,
        None if is_request(head.code) => "Request",
        None if head.code == 0 => "Empty",
        None => "Response",
    };
    if message.wants_text && head.code != 0 {
        message.row.token.set_hex(&head.token.bytes());
    }
}

/// Options and payload; those of signaling messages have numbers of their own (RFC 8323 §5.2) and are not named.
fn body(head: &Header, bytes: &[u8], len: usize, message: &mut Message) -> Step {
    let mut cursor = Cursor::new(bytes);
    let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    message.row.header_bytes = number(head.bytes);
    if cursor.take(head.bytes).is_err() || head.code >= CSM {
        message.row.option_bytes = number(len - head.bytes);
        return Step::Message { len };
    }
    let told = match read_options(&mut cursor, message) {
        Ok(told) => told,
        Err(OptionFault::Short) if bytes.len() < len => {
            (message.row.opaque_bytes, message.row.security_bytes) = (number(len - head.bytes), 0);
            return Step::Message { len };
        }
        Err(OptionFault::Short) => return malformed(bytes.len(), "option runs past the message", len),
        Err(OptionFault::Broken(why)) => return Step::Malformed { len, why },
    };
    let marker = usize::from(told.has_marker);
    message.row.header_bytes += number(marker);
    divide(message, cursor.offset() - head.bytes - marker, len - cursor.offset(), true);
    message.payload_range = cursor.offset()..bytes.len();
    Step::Message { len }
}

/// The first message of a connection is a CSM (RFC 8323 §5.3); its port has to speak for the rest.
fn probe(bytes: &[u8]) -> Likely {
    match header(bytes) {
        Ok(head) if head.code == CSM && head.bytes + head.rest == bytes.len() && head.rest < 32 => Likely::Yes,
        Ok(head) if is_known(head.code) => Likely::Maybe,
        Ok(_) => Likely::No,
        Err(_) => Likely::Maybe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn csm_and_get_are_read() {
        // RFC 8323 §5.3: CSM, code 7.01, with Max-Message-Size 1152 (option 2, two bytes); a GET with token 20 and Uri-Path "a"
        for (bytes, kind, option_bytes) in [(&b"\x30\xe1\x22\x04\x80"[..], "CSM", 3), (b"\x21\x01\x20\xb1a", "Request", 2)] {
            let mut message = Message { wants_text: true, ..Message::default() };
            let step = CoapTcp { is_framed: false }.next(Input::whole(bytes), Side::Client, &mut message);

            assert_eq!((Step::Message { len: bytes.len() }, kind, option_bytes), (step, message.kind, message.option_bytes));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_get_one_of_three_answers(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut message = Message::default();
            match (CoapTcp { is_framed: false }).next(Input::whole(&bytes), Side::Client, &mut message) {
                Step::Message { len } => {
                    prop_assert!(len > 0 && len <= bytes.len());
                    prop_assert_eq!(len, (message.security_bytes + message.header_bytes + message.option_bytes + message.payload_bytes + message.opaque_bytes) as usize);
                }
                Step::NeedMore { at_least } => prop_assert!(at_least > bytes.len()),
                Step::Malformed { len, .. } => prop_assert!(len > 0 && len <= bytes.len()),
            }
        }
    }
}
