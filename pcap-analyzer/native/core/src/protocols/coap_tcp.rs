//! CoAP over TCP (RFC 8323): CoAP's options and codes behind a length, without types and message IDs.

use super::coap::{divide, is_known, is_request, read_options, variant, OptionFault, Talk};
use super::{Carrier, Decoder, Input, Likely, Malformed, Pairing, Port, Protocol, Step};
use crate::bytes::{Cursor, Short};
use crate::exchanges::{ExchangeId, Exchanges, Moment, Placement};
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
    pairing: || Box::<Connection>::default(),
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
    pairing: || Box::<Connection>::default(),
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

    fn is_cut_start(&self, input: Input<'_>, _: Side) -> bool {
        header(input.bytes).is_ok_and(|head| head.bytes + head.rest == input.wire_bytes && head.code > 0 && is_known(head.code))
    }

    fn is_boundary(&self, bytes: &[u8], _: Side) -> Option<bool> {
        let head = header(bytes).ok()?;
        let is_likely = head.bytes + head.rest < LIKELY_BYTES && head.code > 0 && is_known(head.code);
        Some(is_likely && probe(bytes) != Likely::No)
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
        Err(OptionFault::Short { known }) if bytes.len() < len && known <= len => {
            divide(message, known - head.bytes, len - known, false);
            return Step::Message { len };
        }
        Err(OptionFault::Short { .. }) => return malformed(bytes.len(), "option runs past the message", len),
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

/// What belongs together in a connection: requests and responses, and besides them Ping and Pong.
#[derive(Debug, Default)]
struct Connection {
    talk: Talk,
    /// Each side's Pings that have no Pong yet, in their order.
    pings: [Vec<(Token, ExchangeId)>; 2],
}

impl Pairing for Connection {
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        match message.kind {
            "Request" | "Response" => self.talk.place(message, from, at, exchanges),
            "Ping" => Placement::of(self.ping(message, from, at, exchanges)),
            "Pong" => self.pong(message, from, at, exchanges).map_or(Placement::UNMATCHED, Placement::of),
            _ => Placement::default(),
        }
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        for (_, exchange) in self.pings.iter_mut().flat_map(|pings| pings.drain(..)) {
            exchanges.end(exchange, "unanswered");
        }
        self.talk.end(exchanges);
    }
}

impl Connection {
    fn ping(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> ExchangeId {
        let exchange = exchanges.open("ping", message, from, at);
        self.pings.get_mut(from.index()).into_iter().for_each(|pings| pings.push((message.token, exchange)));
        exchange
    }

    /// A Pong has the token of its Ping (RFC 8323 §5.4); behind one with the Custody option it may come late.
    fn pong(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Option<ExchangeId> {
        let pings = self.pings.get_mut(from.peer().index())?;
        let first = pings.iter().position(|(token, _)| *token == message.token)?;
        let (_, exchange) = pings.remove(first);
        exchanges.join(exchange, message, at);
        exchanges.respond(exchange, at);
        exchanges.end(exchange, "complete");
        exchanges.forget(exchange);
        Some(exchange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 8323 §3.2: Len 8, a token of one byte; Uri-Path of five bytes, of which two are at hand, then the marker and a byte of payload.
    #[test]
    fn an_option_that_is_cut_has_the_length_that_it_tells() {
        let mut message = Message::default();
        let step = CoapTcp { is_framed: false }.next(Input { bytes: b"\x81\x02\x20\xb5ab", wire_bytes: 11 }, Side::Client, &mut message);

        assert_eq!(Step::Message { len: 11 }, step);
        assert_eq!((3, 6, 2), (message.header_bytes, message.option_bytes, message.opaque_bytes));
    }

    #[test]
    fn csm_and_get_are_read() {
        // RFC 8323 §5.3: CSM, code 7.01, with Max-Message-Size 1152 (option 2, two bytes); a GET with token 20 and Uri-Path "a"
        for (bytes, kind, option_bytes) in [(&b"\x30\xe1\x22\x04\x80"[..], "CSM", 3), (b"\x21\x01\x20\xb1a", "Request", 2)] {
            let mut message = Message { wants_text: true, ..Message::default() };
            let step = CoapTcp { is_framed: false }.next(Input::whole(bytes), Side::Client, &mut message);

            assert_eq!((Step::Message { len: bytes.len() }, kind, option_bytes), (step, message.kind, message.option_bytes));
        }
    }

    /// A connection with its exchanges.
    #[derive(Default)]
    struct Scene {
        connection: Connection,
        exchanges: Exchanges,
    }

    impl Scene {
        fn with_rows() -> Self {
            Self { exchanges: Exchanges::new(true), ..Self::default() }
        }

        fn send(&mut self, from: Side, time_ms: i64, bytes: &[u8]) -> Placement {
            let mut message = Message::default();
            let step = CoapTcp { is_framed: false }.next(Input::whole(bytes), from, &mut message);
            assert_eq!(Step::Message { len: bytes.len() }, step);
            let at = Moment { time_ns: time_ms * 1_000_000, ..Moment::default() };
            self.connection.place(&message, from, &at, &mut self.exchanges)
        }

        /// Kinds, outcomes and times to the response in milliseconds, by number.
        fn end(mut self) -> Vec<(&'static str, &'static str, Option<i64>)> {
            self.connection.end(&mut self.exchanges);
            self.exchanges.finish();
            let mut ended = self.exchanges.take_ended();
            ended.sort_by_key(|exchange| exchange.number);
            ended.iter().map(|exchange| (exchange.kind, exchange.outcome, exchange.rtt_ns.map(|rtt_ns| rtt_ns / 1_000_000))).collect()
        }
    }

    const CSM_BYTES: &[u8] = b"\0\xe1";

    #[test]
    fn signals_answer_no_request_and_a_pong_the_ping_with_its_token() {
        // RFC 8323 §5.4: Ping is 7.02 and Pong 7.03, with the same token; Custody is option 2, empty; §5.5: Release is 7.04
        let mut scene = Scene::with_rows();
        scene.send(Side::Client, 0, CSM_BYTES);
        scene.send(Side::Client, 100, b"\x20\x01\xb1a");
        scene.send(Side::Server, 110, CSM_BYTES);
        scene.send(Side::Client, 200, b"\0\xe2");
        scene.send(Side::Client, 210, b"\x11\xe2\x07\x20");
        assert_eq!(Placement::UNMATCHED, scene.send(Side::Server, 220, b"\x01\xe3\x09"));
        scene.send(Side::Server, 250, b"\0\xe3");
        scene.send(Side::Server, 270, b"\x01\xe3\x07");
        scene.send(Side::Server, 280, b"\0\xe2");
        assert!(scene.send(Side::Server, 1100, b"\x80\x45\xffpayload").is_data);
        scene.send(Side::Client, 1200, b"\0\xe4");

        let expected = vec![
            ("GET", "complete", Some(1000)),
            ("ping", "complete", Some(50)),
            ("ping", "complete", Some(60)),
            ("ping", "unanswered", None),
        ];
        assert_eq!(expected, scene.end());
    }

    #[test]
    fn a_request_gets_one_response_and_is_forgotten_with_it() {
        // RFC 8323 §3.3: the transport is reliable, so there are neither duplicates nor late ones
        let mut scene = Scene::with_rows();
        scene.send(Side::Client, 0, b"\x21\x01\x20\xb1a");
        assert!(scene.send(Side::Server, 10, b"\x31\x45\x20\xffhi").is_data);
        let ended = scene.exchanges.take_ended();
        assert_eq!(
            vec![("complete", 2, "2.05")],
            ended.iter().map(|row| (row.outcome, row.payload_bytes, &*row.result)).collect::<Vec<_>>()
        );
        assert_eq!(Placement::UNMATCHED, scene.send(Side::Server, 20, b"\x31\x45\x20\xffhi"));
    }

    #[test]
    fn notifications_are_in_order_whatever_their_observe_value() {
        // RFC 8323 §7.1: the value "MAY be empty on transmission and MUST be ignored on reception"
        let mut scene = Scene::with_rows();
        scene.send(Side::Client, 0, b"\x31\x01\x20\x60\x51a");
        for time_ms in [10, 1010, 2010] {
            assert!(scene.send(Side::Server, time_ms, b"\x41\x45\x20\x60\xffhi").is_data);
        }
        assert_eq!(2, scene.exchanges.take_ended().len());
        scene.send(Side::Client, 3000, b"\x41\x01\x20\x61\x01\x51a");
        assert_eq!(vec!["cancelled"], scene.exchanges.take_ended().iter().map(|row| row.outcome).collect::<Vec<_>>());
    }

    /// A block of a transfer (RFC 8323 §6, SZX 7: several blocks of 1,024 bytes each): code, token, Uri-Path "a" in requests, Block1 or Block2, payload.
    fn bert(code: u8, token: u8, path: &[u8], block: &[u8], payload_bytes: usize) -> Vec<u8> {
        let payload = if payload_bytes > 0 { [vec![0xff], vec![b'x'; payload_bytes]].concat() } else { Vec::new() };
        let rest = path.len() + block.len() + payload.len();
        let length = if rest < 13 {
            vec![(rest as u8) << 4 | 1]
        } else if rest < 269 {
            vec![0xd1, (rest - 13) as u8]
        } else {
            [vec![0xe1], ((rest - 269) as u16).to_be_bytes().to_vec()].concat()
        };
        [&length[..], &[code, token], path, block, &payload].concat()
    }

    #[test]
    fn blocks_of_several_times_1024_bytes_are_one_transfer() {
        // the numbers of RFC 8323 §6.1's GET: Block2 of 3,072, 5,120 and 4,711 bytes, so the requests ask for 3 and 8; each with a token of its own
        let mut scene = Scene::with_rows();
        for (token, number, payload_bytes, time_ms) in [(1, 0_u8, 3072, 0), (2, 3, 5120, 20), (3, 8, 4711, 40)] {
            let (is_first, more) = (number == 0, u8::from(payload_bytes != 4711) << 3);
            let asked = [0xc1, number << 4 | 7];
            scene.send(Side::Client, time_ms, &bert(1, token, b"\xb1a", if is_first { &[] } else { &asked }, 0));
            scene.send(Side::Server, time_ms + 10, &bert(69, token, b"", &[0xd1, 10, number << 4 | more | 7], payload_bytes));
        }
        let ended = scene.exchanges.take_ended();
        let rows: Vec<_> = ended.iter().map(|row| (row.kind, row.outcome, row.parts, row.payload_bytes, row.messages)).collect();
        assert_eq!(vec![("GET block-wise", "complete", Some(3), 12_903, 6)], rows);
    }

    #[test]
    fn the_size_of_a_bert_block_is_not_in_its_option() {
        let mut message = Message { wants_text: true, ..Message::default() };
        CoapTcp { is_framed: false }.next(Input::whole(&bert(69, 1, b"", &[0xd1, 10, 0x0f], 3072)), Side::Server, &mut message);

        assert_eq!((Some("Block2: 0/1/BERT"), Some(7), 3072), (message.options.get(), message.block2_szx, message.payload_bytes));
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
