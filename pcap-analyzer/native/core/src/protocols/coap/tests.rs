use super::*;
use crate::exchanges::{Acknowledgement, Exchange, Exchanges, Moment, Placement};
use crate::protocols::Pairing;
use proptest::prelude::*;

mod transfers;

fn decoded(bytes: &[u8]) -> (Message, Step) {
    let mut message = Message { wants_text: true, ..Message::default() };
    let step = Coap.next(Input::whole(bytes), Side::Client, &mut message);
    (message, step)
}

#[test]
fn the_request_and_response_of_figure_16() {
    // RFC 7252 Appendix A, Figure 16: GET coap://server/temperature and its piggybacked 2.05 "22.3 C"
    let (request, _) = decoded(b"\x40\x01\x7d\x34\xbbtemperature");
    let (response, step) = decoded(b"\x60\x45\x7d\x34\xff22.3 C");

    assert_eq!(
        ("CON", "GET", Some(0x7d34), Some("temperature")),
        (request.kind, request.variant, request.message_id, request.uri_path.get())
    );
    assert_eq!((4, 12, 0), (request.header_bytes, request.option_bytes, request.payload_bytes));
    assert_eq!(("ACK", "2.05", Some(0x7d34)), (response.kind, response.variant, response.message_id));
    assert_eq!((Step::Message { len: 11 }, 5, 6), (step, response.header_bytes, response.payload_bytes));
}

#[test]
fn the_token_of_figure_17() {
    // RFC 7252 Appendix A, Figure 17: the same with token 0x20
    let (request, _) = decoded(b"\x41\x01\x7d\x35\x20\xbbtemperature");

    assert_eq!((Some("20"), 5), (request.row.token.get(), request.header_bytes));
}

#[test]
fn extended_deltas_and_lengths() {
    // Size1 (60): delta 13 + 47; No-Response (258): delta 13 + 185; a Uri-Path of 269 bytes: length 14 + 0
    let mut long = b"\x40\x01\0\x01\xbe\0\0".to_vec();
    long.extend_from_slice(&[b'a'; 269]);
    long.extend_from_slice(b"\xd1\x24\x40\xd1\xb9\x1a");
    let (message, step) = decoded(&long);

    assert_eq!(Step::Message { len: long.len() }, step);
    assert_eq!((Some(64), Some(26), Some(269)), (message.size1, message.no_response, message.uri_path.get().map(str::len)));
}

#[test]
fn what_breaks_the_format_is_malformed() {
    for bytes in [
        &b"\x80\x01\0\x01"[..],
        b"\x49\x01\0\x01123456789",
        b"\x40\x01\0\x01\xff",
        b"\x40\x01\0\x01\xf1a",
        b"\x40\x01\0\x01\x1fa",
        b"\x40\0\0\x01\xff",
        b"\x40\x01",
    ] {
        let (_, step) = decoded(bytes);
        assert!(matches!(step, Step::Malformed { .. }), "{bytes:02x?}: {step:?}");
    }
}

#[test]
fn random_bytes_are_no_coap_for_sure() {
    assert_eq!(Likely::Yes, probe(b"\x41\x01\x7d\x35\x20\xbbtemperature"));
    assert_eq!(Likely::No, probe(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0"));
    assert!(probe(b"\x60\0\x12\x34") < Likely::Yes);
}

/// Builds a message: kind 0 to 3, code, message ID, token, options and payload.
fn build(kind: u8, code: u8, id: u16, token: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x40 | kind << 4 | token.len() as u8, code, (id >> 8) as u8, id as u8];
    bytes.extend_from_slice(token);
    bytes.extend_from_slice(rest);
    bytes
}

struct Scene {
    talk: Talk,
    exchanges: Exchanges,
    member: u16,
}

impl Scene {
    fn new() -> Self {
        Self { talk: Talk::default(), exchanges: Exchanges::new(true), member: 0 }
    }

    /// What follows is from or to a member of the group.
    fn with(&mut self, member: u16) -> &mut Self {
        self.member = member;
        self
    }

    /// Where nobody wants the rows of exchanges.
    fn without_rows() -> Self {
        Self { exchanges: Exchanges::new(false), ..Self::new() }
    }

    fn send(&mut self, from: Side, time_ms: i64, bytes: &[u8]) -> Placement {
        let (mut message, step) = decoded(bytes);
        assert_eq!(Step::Message { len: bytes.len() }, step);
        message.protocol = "coap";
        let moment = Moment { member: self.member, frame: 1, time_ns: time_ms * 1_000_000, ..Moment::default() };
        self.talk.place(&message, from, &moment, &mut self.exchanges)
    }

    fn end(mut self) -> Vec<Exchange> {
        self.talk.end(&mut self.exchanges);
        self.exchanges.finish();
        let mut ended = self.exchanges.take_ended();
        ended.sort_by_key(|exchange| exchange.number);
        ended
    }
}

const GET: &[u8] = b"\xb1a";
const CONTENT: &[u8] = b"\xffhi";
use Side::{Client, Server};

fn ms(time_ns: Option<i64>) -> Option<i64> {
    time_ns.map(|time_ns| time_ns / 1_000_000)
}

#[test]
fn piggybacked_and_separate_responses() {
    let mut scene = Scene::new();
    scene.send(Client, 0, &build(0, 1, 1, b"A", GET));
    assert!(scene.send(Server, 10, &build(2, 69, 1, b"A", CONTENT)).is_data);
    scene.send(Client, 100, &build(0, 1, 2, b"B", GET));
    scene.send(Server, 105, &build(2, 0, 2, b"", b""));
    scene.send(Server, 600, &build(0, 69, 77, b"B", CONTENT));
    scene.send(Client, 605, &build(2, 0, 77, b"", b""));
    let ended = scene.end();

    assert_eq!(2, ended.len());
    assert_eq!((Some(10), Some(10), "complete"), (ms(ended[0].ack_rtt_ns), ms(ended[0].rtt_ns), ended[0].outcome));
    assert_eq!((Some(5), Some(500), 4), (ms(ended[1].ack_rtt_ns), ms(ended[1].rtt_ns), ended[1].messages));
}

#[test]
fn a_response_before_the_ack_confirms_the_request() {
    let mut scene = Scene::new();
    scene.send(Client, 0, &build(0, 1, 1, b"A", GET));
    scene.send(Server, 20, &build(1, 69, 9, b"A", CONTENT));
    scene.send(Server, 30, &build(2, 0, 1, b"", b""));
    let ended = scene.end();

    assert_eq!((1, Some(20), Some(20), 3), (ended.len(), ms(ended[0].rtt_ns), ms(ended[0].ack_rtt_ns), ended[0].messages));
}

#[test]
fn a_repeated_request_is_one_exchange_with_one_time() {
    let mut scene = Scene::new();
    scene.send(Client, 0, &build(0, 1, 1, b"A", GET));
    assert!(scene.send(Client, 2100, &build(0, 1, 1, b"A", GET)).is_retransmission);
    assert!(scene.send(Server, 2200, &build(2, 69, 1, b"A", CONTENT)).is_data);
    assert!(!scene.send(Server, 2250, &build(2, 69, 1, b"A", CONTENT)).is_data);
    let ended = scene.end();

    assert_eq!(
        (1, Some(2200), 2, 4, true),
        (ended.len(), ms(ended[0].rtt_ns), ended[0].retransmissions, ended[0].messages, ended[0].is_opening_repeated)
    );
}

#[test]
fn an_id_is_new_again_after_its_lifetime() {
    let mut scene = Scene::new();
    scene.send(Client, 0, &build(0, 1, 1, b"A", GET));
    scene.send(Server, 10, &build(2, 69, 1, b"A", CONTENT));
    assert!(!scene.send(Client, 300_000, &build(0, 1, 1, b"A", GET)).is_retransmission);
    scene.send(Server, 300_040, &build(2, 69, 1, b"A", CONTENT));
    let ended = scene.end();

    assert_eq!((2, Some(40)), (ended.len(), ms(ended[1].rtt_ns)));
}

#[test]
fn empty_tokens_are_matched_by_id_or_when_only_one_is_open() {
    let mut scene = Scene::new();
    scene.send(Client, 0, &build(0, 1, 1, b"", GET));
    scene.send(Server, 30, &build(2, 69, 1, b"", CONTENT));
    scene.send(Client, 100, &build(1, 1, 2, b"", GET));
    scene.send(Server, 120, &build(1, 69, 50, b"", CONTENT));
    scene.send(Client, 200, &build(1, 1, 3, b"", GET));
    scene.send(Client, 210, &build(1, 1, 4, b"", GET));
    scene.send(Server, 220, &build(1, 69, 51, b"", CONTENT));
    let outcomes: Vec<_> = scene.end().iter().map(|exchange| (exchange.outcome, ms(exchange.rtt_ns))).collect();

    assert_eq!(vec![("complete", Some(30)), ("complete", Some(20)), ("ambiguous", None), ("ambiguous", None)], outcomes);
}

#[test]
fn notifications_are_ordered_by_their_observe_value() {
    let notification = |kind, id, value: u8| build(kind, 69, id, b"T", &[0x61, value, 0xff, b'x']);
    let mut scene = Scene::new();
    scene.send(Client, 0, &build(0, 1, 1, b"T", b"\x60\x51a"));
    assert!(scene.send(Server, 10, &build(2, 69, 1, b"T", b"\x61\x01\xffx")).is_data);
    assert!(scene.send(Server, 1010, &notification(1, 20, 2)).is_data);
    let confirmable = scene.send(Server, 2010, &notification(0, 21, 3));
    let given = scene.send(Client, 2015, &build(2, 0, 21, b"", b""));
    assert!(!scene.send(Server, 3010, &notification(1, 22, 3)).is_data);
    scene.send(Server, 4010, &notification(1, 23, 9));
    scene.send(Client, 4015, &build(3, 0, 23, b"", b""));
    let ended = scene.end();

    assert_eq!(confirmable.acknowledgement, Acknowledgement::Expected);
    assert_eq!(given.acknowledgement, Acknowledgement::Given);
    assert_eq!(("observe", "cancelled", Some(10)), (ended[0].kind, ended[0].outcome, ms(ended[0].rtt_ns)));
    assert_eq!((Some(1000), Some(1000), Some(5)), (ms(ended[1].interval_ns), ms(ended[2].interval_ns), ms(ended[2].ack_rtt_ns)));
    assert!(ended[1..].iter().all(|exchange| exchange.kind == "notification" && exchange.parent == Some(0)));
}

/// A response or notification with an Observe value.
fn observed(kind: u8, id: u16, token: &[u8], value: u8) -> Vec<u8> {
    build(kind, 69, id, token, &[0x61, value, 0xff, b'x'])
}

#[test]
fn a_reset_of_any_notification_cancels_its_registration_whoever_wants_rows() {
    // RFC 7641 §3.6: a client that forgot its registration rejects the next notification with a Reset, and the server removes the entry
    for mut scene in [Scene::new(), Scene::without_rows()] {
        for (id, token) in [(1, b"S"), (2, b"T")] {
            scene.send(Client, 0, &build(0, 1, id, token, b"\x60\x51a"));
            scene.send(Server, 10, &observed(2, id, token, 1));
        }
        assert!(scene.send(Server, 1000, &observed(1, 20, b"T", 2)).is_data);
        assert!(scene.send(Server, 1005, &observed(1, 21, b"T", 3)).is_data);
        scene.send(Client, 1010, &build(3, 0, 20, b"", b""));

        assert_eq!(Placement::UNMATCHED, scene.send(Server, 2000, &observed(1, 22, b"T", 4)));
        assert!(scene.send(Server, 2000, &observed(1, 23, b"S", 2)).is_data);
    }
}

#[test]
fn a_reset_of_the_first_response_ends_the_registration() {
    let mut scene = Scene::new();
    scene.send(Client, 0, &build(1, 1, 1, b"T", b"\x60\x51a"));
    scene.send(Server, 10, &observed(1, 20, b"T", 1));
    scene.send(Client, 20, &build(3, 0, 20, b"", b""));

    assert_eq!(Placement::UNMATCHED, scene.send(Server, 1000, &observed(1, 21, b"T", 2)));
    assert_eq!(vec!["reset"], scene.end().iter().map(|exchange| exchange.outcome).collect::<Vec<_>>());
}

#[test]
fn the_last_notification_has_no_observe_value_but_data() {
    // RFC 7641 §3.2: a notification without Observe option tells that the client is not on the list of observers any more
    let mut scene = Scene::new();
    scene.send(Client, 0, &build(0, 1, 1, b"T", b"\x60\x51a"));
    scene.send(Server, 10, &observed(2, 1, b"T", 1));
    let last = scene.send(Server, 1010, &build(0, 69, 20, b"T", CONTENT));
    scene.send(Client, 1015, &build(2, 0, 20, b"", b""));
    let ended = scene.end();

    assert_eq!((true, Acknowledgement::Expected), (last.is_data, last.acknowledgement));
    assert_eq!(("cancelled", "complete", 2), (ended[0].outcome, ended[1].outcome, ended[1].payload_bytes));
    assert_eq!((Some(1000), Some(5)), (ms(ended[1].interval_ns), ms(ended[1].ack_rtt_ns)));
}

/// Exchanges as kind, outcome, milliseconds to the response and of the interval, and whether the request was sent again.
type Row = (&'static str, &'static str, Option<i64>, Option<i64>, bool);

fn rows(scene: Scene) -> Vec<Row> {
    let row = |row: &Exchange| (row.kind, row.outcome, ms(row.rtt_ns), ms(row.interval_ns), row.is_opening_repeated);
    scene.end().iter().map(row).collect()
}

#[test]
fn a_renewed_registration_is_a_request_with_a_response() {
    // RFC 7641 §3.3.1: a client may send its GET again, with the same token; metrics.md: an exchange is a request, its ACK, its response
    let mut scene = Scene::new();
    let register = |id| build(0, 1, id, b"T", b"\x60\x51a");
    scene.send(Client, 0, &register(1));
    assert!(scene.send(Server, 10, &observed(2, 1, b"T", 1)).is_data);
    scene.send(Client, 60_000, &register(2));
    assert!(scene.send(Server, 60_005, &observed(1, 40, b"T", 2)).is_data);
    scene.send(Client, 62_500, &register(2));
    assert!(scene.send(Server, 62_520, &observed(2, 2, b"T", 2)).is_data);
    assert!(scene.send(Server, 63_520, &observed(1, 41, b"T", 3)).is_data);
    scene.send(Client, 120_000, &register(3));
    scene.send(Client, 122_500, &register(3));
    assert!(scene.send(Server, 123_520, &observed(1, 42, b"T", 4)).is_data);
    scene.send(Client, 123_530, &build(3, 0, 41, b"", b""));
    assert_eq!(Placement::UNMATCHED, scene.send(Server, 124_000, &observed(1, 43, b"T", 5)));

    let expected: Vec<Row> = vec![
        ("observe", "complete", Some(10), None, false),
        ("observe", "complete", Some(2520), Some(60_000), true),
        ("notification", "complete", None, Some(59_995), false),
        ("notification", "complete", None, Some(1000), false),
        ("observe", "cancelled", None, Some(60_000), true),
        ("notification", "complete", None, Some(60_000), false),
    ];
    assert_eq!(expected, rows(scene));
}

#[test]
fn a_renewal_without_an_answer_is_unanswered_and_one_may_be_answered_separately() {
    for token in [&b"T"[..], b""] {
        let mut scene = Scene::new();
        let register = |id| build(0, 1, id, token, b"\x60\x51a");
        scene.send(Client, 0, &register(1));
        scene.send(Server, 10, &observed(2, 1, token, 1));
        scene.send(Client, 60_000, &register(2));
        scene.send(Server, 60_005, &build(2, 0, 2, b"", b""));
        assert!(scene.send(Server, 60_500, &observed(1, 40, token, 1)).is_data);
        scene.send(Client, 120_000, &register(3));

        let expected: Vec<Row> = vec![
            ("observe", "complete", Some(10), None, false),
            ("observe", "complete", Some(500), Some(60_000), false),
            ("observe", "unanswered", None, Some(60_000), false),
        ];
        // the second ends as the third takes its place
        assert_eq!(expected, rows(scene));
    }
}

#[test]
fn members_of_a_group_have_message_ids_of_their_own() {
    // RFC 7252 §4.4: IDs are a source endpoint's own; §8.2: each member answers with the request's token
    let mut scene = Scene::new();
    scene.send(Client, 0, &build(1, 1, 1, b"T", GET));
    assert!(scene.with(1).send(Server, 40, &build(1, 69, 1, b"T", CONTENT)).is_data);
    assert!(scene.with(2).send(Server, 50, &build(1, 69, 1, b"T", CONTENT)).is_data);
    assert!(scene.with(3).send(Server, 60, &build(0, 69, 33, b"T", CONTENT)).is_data);
    assert!(scene.with(2).send(Server, 70, &build(1, 69, 1, b"T", CONTENT)).is_retransmission);
    assert_eq!(Placement::UNMATCHED, scene.with(2).send(Client, 80, &build(2, 0, 33, b"", b"")));
    assert_eq!(Acknowledgement::Given, scene.with(3).send(Client, 80, &build(2, 0, 33, b"", b"")).acknowledgement);
    assert!(!scene.with(2).send(Client, 90, &build(0, 1, 1, b"U", GET)).is_retransmission);
    assert!(scene.with(2).send(Server, 95, &build(2, 69, 1, b"U", CONTENT)).is_data);
    let ended: Vec<_> = scene.end().iter().map(|row| (ms(row.rtt_ns), row.messages, row.retransmissions, row.payload_bytes)).collect();

    assert_eq!(vec![(Some(40), 6, 1, 6), (Some(5), 2, 0, 2)], ended);
}

#[test]
fn a_request_that_suppresses_responses_is_not_unanswered_without_one() {
    // RFC 7967 §2.1, No-Response (258: delta 13, extended by 234, behind Uri-Path): 26 suppresses all classes, 2 success, 0 none
    let put = |id, kind, value: &[u8]| {
        let option = [&[0xb1, b'a', 0xd0 | value.len() as u8, 234], value, &[0xff, b'1']].concat();
        build(kind, 3, id, &[id as u8], &option)
    };
    let mut scene = Scene::new();
    scene.send(Client, 0, &put(1, 1, &[26]));
    scene.send(Client, 10, &put(2, 0, &[26]));
    scene.send(Server, 20, &build(2, 0, 2, b"", b""));
    scene.send(Client, 30, &put(3, 1, &[2]));
    scene.send(Client, 40, &put(4, 1, &[2]));
    scene.send(Server, 50, &build(1, 132, 90, &[4], b""));
    scene.send(Client, 60, &put(5, 1, b""));

    let outcomes: Vec<_> = scene.end().iter().map(|exchange| (exchange.outcome, ms(exchange.ack_rtt_ns))).collect();
    assert_eq!(
        vec![("suppressed", None), ("suppressed", Some(10)), ("suppressed", None), ("complete", None), ("unanswered", None)],
        outcomes
    );
}

#[test]
fn ping_unanswered_and_superseded() {
    let mut scene = Scene::new();
    scene.send(Client, 0, &build(0, 0, 1, b"", b""));
    scene.send(Server, 5, &build(3, 0, 1, b"", b""));
    scene.send(Client, 10, &build(0, 1, 2, b"A", GET));
    scene.send(Client, 20, &build(0, 1, 3, b"A", GET));
    let outcomes: Vec<_> = scene.end().iter().map(|exchange| (exchange.kind, exchange.outcome)).collect();

    assert_eq!(vec![("ping", "complete"), ("GET", "superseded"), ("GET", "unanswered")], outcomes);
}

#[test]
fn a_piggybacked_response_answers_the_request_with_its_message_id() {
    // RFC 7252 §5.3.2: "the Message ID of the Confirmable request and the Acknowledgment must match, and the tokens"
    let mut scene = Scene::new();
    scene.send(Client, 0, &build(0, 1, 1, b"A", GET));
    scene.send(Client, 1000, &build(0, 1, 2, b"A", GET));
    assert!(scene.send(Server, 1050, &build(2, 69, 1, b"A", CONTENT)).is_data);
    assert!(scene.send(Server, 2060, &build(2, 69, 2, b"A", CONTENT)).is_data);
    assert!(scene.send(Server, 2070, &build(2, 69, 1, b"A", CONTENT)).is_retransmission);
    let ended: Vec<_> = scene.end().iter().map(|exchange| (exchange.outcome, ms(exchange.rtt_ns), exchange.messages)).collect();

    assert_eq!(vec![("complete", Some(1050), 3), ("complete", Some(1060), 2)], ended);
}

#[test]
fn a_request_whose_token_another_took_is_superseded_where_it_is_not_answered() {
    let mut scene = Scene::new();
    for (id, time_ms) in [(1, 0), (2, 10), (3, 20)] {
        scene.send(Client, time_ms, &build(0, 1, id, b"A", GET));
    }
    scene.send(Server, 30, &build(2, 0, 1, b"", b""));
    assert!(!scene.send(Server, 40, &build(2, 69, 1, b"A", CONTENT)).is_data);
    assert!(!scene.send(Server, 50, &build(2, 69, 2, b"B", CONTENT)).is_data);
    assert!(scene.send(Server, 60, &build(1, 69, 9, b"A", CONTENT)).is_data);
    let ended: Vec<_> = scene.end().iter().map(|exchange| (exchange.outcome, ms(exchange.rtt_ns))).collect();

    assert_eq!(vec![("superseded", None), ("superseded", None), ("complete", Some(40))], ended);
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_malformed(bytes in proptest::collection::vec(any::<u8>(), 1..80), cut in 0usize..80) {
        let wire_bytes = bytes.len();
        let captured = &bytes[..cut.min(wire_bytes)];
        let mut message = Message::default();
        match Coap.next(Input { bytes: captured, wire_bytes }, Side::Client, &mut message) {
            Step::Message { len } => {
                prop_assert_eq!(len, wire_bytes);
                prop_assert_eq!(len, (message.security_bytes + message.header_bytes + message.option_bytes + message.payload_bytes + message.opaque_bytes) as usize);
            }
            Step::Malformed { len, .. } => prop_assert_eq!(len, wire_bytes),
            Step::NeedMore { .. } => prop_assert!(false),
        }
        let _ = probe(&bytes);
    }

    #[test]
    fn any_order_of_messages_is_placed(messages in proptest::collection::vec((0u8..4, prop_oneof![Just(0u8), Just(1), Just(69), Just(132)], 0u16..4, 0u8..3, any::<bool>(), 0i64..400_000), 0..60)) {
        let mut scene = Scene::new();
        let mut time = 0;
        for (kind, code, id, token, is_client, step) in messages {
            time += step;
            let token = &[token][..usize::from(code != 0 && token > 0)];
            scene.send(if is_client { Client } else { Server }, time, &build(kind, code, id, token, if code == 0 { b"" } else { CONTENT }));
        }
        scene.end();
    }
}
