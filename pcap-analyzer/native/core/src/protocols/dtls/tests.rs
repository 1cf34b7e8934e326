use super::*;
use crate::exchanges::{Exchange, Exchanges, Moment};
use crate::protocols::tls::testing::{assert_answers_keep_the_contract, client_hello, decode_all, extension, server_hello, vector};
use crate::protocols::Decoding;
use proptest::prelude::*;

fn numbered(kind: u8, epoch: u16, number: u64, connection_id: &[u8], fragment: &[u8]) -> Vec<u8> {
    [&[kind, 0xfe, 0xfd][..], &epoch.to_be_bytes(), &number.to_be_bytes()[2..], connection_id, &vector(2, fragment)].concat()
}

fn record(kind: u8, epoch: u16, number: u64, fragment: &[u8]) -> Vec<u8> {
    numbered(kind, epoch, number, &[], fragment)
}

/// The part of a handshake message from `offset` on.
fn fragment(kind: u8, seq: u16, body: &[u8], offset: usize, length: usize) -> Vec<u8> {
    let u24 = |number: usize| vector(3, &vec![0; number])[..3].to_vec();
    [&[kind][..], &u24(body.len()), &seq.to_be_bytes(), &u24(offset), &u24(length), &body[offset..offset + length]].concat()
}

fn handshake(kind: u8, seq: u16, body: &[u8]) -> Vec<u8> {
    fragment(kind, seq, body, 0, body.len())
}

fn run(datagrams: &[(Side, Vec<u8>)]) -> (Vec<Message>, Vec<Exchange>) {
    let mut decoder = (DTLS.decoder)(&Decoding::default());
    let mut pairing = (DTLS.pairing)();
    let mut exchanges = Exchanges::new(true);
    let mut messages = Vec::new();
    for (at, (from, bytes)) in (1..).zip(datagrams) {
        for message in decode_all(decoder.as_mut(), bytes, *from) {
            let moment = Moment { frame: at, time_ns: at as i64 * 1000, ..Moment::default() };
            pairing.place(&message, *from, &moment, &mut exchanges);
            messages.push(message);
        }
    }
    pairing.end(&mut exchanges);
    (messages, exchanges.take_ended())
}

fn hello(number: u64, seq: u16, cookie: &[u8], extensions: &[Vec<u8>]) -> Vec<u8> {
    record(22, 0, number, &handshake(1, seq, &client_hello(1, b"", Some(cookie), extensions)))
}

fn finished(number: u64, seq: u16) -> Vec<u8> {
    [record(20, 0, number, &[1]), record(22, 1, 0, &[seq as u8; 40])].concat()
}

/// RFC 6347 §4.2.4, Figure 1, with a PSK suite; the client's first and third flights are sent twice.
fn psk_handshake() -> Vec<(Side, Vec<u8>)> {
    use Side::{Client, Server};
    let server =
        [record(22, 0, 1, &handshake(2, 1, &server_hello(0xfefd, b"new", 0xc0a8, &[]))), record(22, 0, 2, &handshake(14, 2, &[]))].concat();
    vec![
        (Client, hello(0, 0, b"", &[])),
        (Client, hello(1, 0, b"", &[])),
        (Server, record(22, 0, 0, &handshake(3, 0, &[0xfe, 0xfd, 1, 9]))),
        (Client, hello(2, 1, b"\x09", &[])),
        (Server, server),
        (Client, [record(22, 0, 3, &handshake(16, 2, &[0, 1, 7])), finished(4, 3)].concat()),
        (Client, [record(22, 0, 5, &handshake(16, 2, &[0, 1, 7])), record(20, 0, 6, &[1]), record(22, 1, 1, &[3; 40])].concat()),
        (Server, finished(3, 3)),
        (Client, record(23, 1, 2, &[0; 26])),
        (Client, record(23, 1, 2, &[0; 26])),
    ]
}

#[test]
fn flights_sent_again_are_retransmissions() {
    let (messages, exchanges) = run(&psk_handshake());

    let again: Vec<usize> = (0..messages.len()).filter(|at| messages[*at].is_retransmission).collect();
    assert_eq!(vec![1, 9, 10, 11, 15], again);
    assert_eq!(("Hello Verify Request", Some(0)), (messages[2].variant, messages[2].message_id));
    assert_eq!((Some("DTLS 1.2"), Some("PSK")), (messages[4].facts.version, messages[4].facts.authentication));
    assert_eq!(Some("TLS_PSK_WITH_AES_128_CCM_8"), messages[4].cipher_suite.get());
    let data = &messages[14];
    assert_eq!((Some(10), 29, 10), (data.plaintext_bytes, data.security_bytes, data.opaque_bytes));
    assert_eq!((Some(1), Some(2)), (data.epoch, data.sequence_number));
    let [exchange] = &exchanges[..] else { panic!("{exchanges:?}") };
    assert_eq!(("complete", Some(6), 14, 4), (exchange.outcome, exchange.parts, exchange.messages, exchange.retransmissions));
    assert_eq!((Some(4000), Some(7000), true), (exchange.ack_rtt_ns, exchange.rtt_ns, exchange.is_opening_repeated));
}

#[test]
fn fragments_are_put_together_and_their_rest_is_no_retransmission() {
    let body = client_hello(1, b"", Some(b""), &[extension(0, &vector(2, &[&[0][..], &vector(2, b"sensor.example")].concat()))]);
    let part = |number, offset, length| (Side::Client, record(22, 0, number, &fragment(1, 0, &body, offset, length)));
    let (messages, _) = run(&[part(0, 40, body.len() - 40), part(1, 0, 30), part(2, 0, 30), part(3, 30, 10)]);

    assert_eq!(vec![false, false, true, false], messages.iter().map(|message| message.is_retransmission).collect::<Vec<_>>());
    assert_eq!((None, Some("sensor.example")), (messages[1].server_name.get(), messages[3].server_name.get()));
}

/// RFC 9146 §3: each side says which connection ID it wants to receive.
#[test]
fn connection_ids_have_the_length_that_their_receiver_asked_for() {
    use Side::{Client, Server};
    let (messages, exchanges) = run(&[
        (Client, hello(0, 0, b"", &[extension(54, &vector(1, b""))])),
        (Server, record(22, 0, 0, &handshake(2, 0, &server_hello(0xfefd, b"", 0xc0a8, &[extension(54, &vector(1, &[0xab, 0xcd]))])))),
        (Server, record(22, 0, 1, &handshake(14, 1, &[]))),
        (Client, [record(20, 0, 1, &[1]), numbered(25, 1, 0, &[0xab, 0xcd], &[0; 41])].concat()),
        (Server, finished(2, 2)),
        (Client, numbered(25, 1, 1, &[0xab, 0xcd], &[0; 27])),
    ]);

    assert_eq!(("tls12_cid", ENCRYPTED_HANDSHAKE), (messages[4].kind, (messages[4].variant, messages[4].facts.is_handshake)));
    let data = &messages[7];
    // 13 bytes of header, 2 of the ID, 8 of nonce, 1 of type, 8 of tag
    assert_eq!((Some("abcd"), "", 32, 10), (data.connection_id.get(), data.variant, data.security_bytes, data.opaque_bytes));
    assert_eq!(Some(10), data.plaintext_bytes);
    assert_eq!(("complete", Some(4)), (exchanges[0].outcome, exchanges[0].parts));
}

/// RFC 6347 §4.2.4: the flight once more, whose Finished is known by its place and its length; data of another length is none.
#[test]
fn a_finished_with_a_connection_id_is_known_when_it_is_sent_again() {
    use Side::{Client, Server};
    let flight = |number, finished| (Client, [record(20, 0, number, &[1]), numbered(25, 1, finished, &[0xab, 0xcd], &[0; 41])].concat());
    let (messages, exchanges) = run(&[
        (Client, hello(0, 0, b"", &[extension(54, &vector(1, b""))])),
        (Server, record(22, 0, 0, &handshake(2, 0, &server_hello(0xfefd, b"", 0xc0a8, &[extension(54, &vector(1, &[0xab, 0xcd]))])))),
        (Server, record(22, 0, 1, &handshake(14, 1, &[]))),
        flight(1, 0),
        flight(2, 1),
        (Server, finished(2, 2)),
        (Client, [record(20, 0, 3, &[1]), numbered(25, 1, 2, &[0xab, 0xcd], &[0; 27])].concat()),
        (Client, numbered(25, 1, 3, &[0xab, 0xcd], &[0; 41])),
    ]);

    let again: Vec<usize> = (0..messages.len()).filter(|at| messages[*at].is_retransmission).collect();
    assert_eq!(vec![5, 6, 9], again);
    let is_handshake: Vec<bool> =
        messages.iter().filter(|message| message.kind == "tls12_cid").map(|message| message.facts.is_handshake).collect();
    assert_eq!(vec![true, true, false, false], is_handshake);
    assert_eq!(("complete", 3), (exchanges[0].outcome, exchanges[0].retransmissions));
}

const ENCRYPTED_HANDSHAKE: (&str, bool) = ("encrypted", true);

/// RFC 9147 §4: unified headers with a short and a long sequence number, with and without length.
#[test]
fn unified_headers_tell_handshake_from_data() {
    use Side::{Client, Server};
    let unified = |first: u8, head: &[u8], bytes: usize| [&[first][..], head, &vec![0; bytes]].concat();
    let (messages, exchanges) = run(&[
        (Client, hello(0, 0, b"", &[])),
        (Server, record(22, 0, 0, &handshake(2, 0, &server_hello(0xfefd, b"", 0x1301, &[extension(43, &[0xfe, 0xfc])])))),
        (Server, unified(0x2e, &[1, 2, 0, 60], 60)),
        (Client, unified(0x22, &[1], 53)),
        (Client, unified(0x2f, &[1, 2, 0, 27], 27)),
    ]);

    assert_eq!((Some("DTLS 1.3"), Some("certificate")), (messages[1].facts.version, messages[1].facts.authentication));
    assert_eq!(("Handshake", ENCRYPTED_HANDSHAKE), (messages[2].kind, (messages[2].variant, messages[2].facts.is_handshake)));
    assert_eq!((55, Some(2), None), (messages[3].security_bytes, messages[3].epoch, messages[3].sequence_number));
    let data = &messages[4];
    assert_eq!(("Application Data", Some(10), 22, 10), (data.kind, data.plaintext_bytes, data.security_bytes, data.opaque_bytes));
    assert_eq!(("complete", Some(3), Some(3000)), (exchanges[0].outcome, exchanges[0].parts, exchanges[0].rtt_ns));
}

/// RFC 6347 §4.2.8: the same ports, another random, numbers from 0 on.
#[test]
fn a_client_that_begins_anew_begins_another_handshake() {
    let anew = record(22, 0, 0, &handshake(1, 0, &client_hello(2, b"", Some(b""), &[])));
    let mut datagrams = psk_handshake();
    datagrams.push((Side::Client, anew));
    let (messages, exchanges) = run(&datagrams);

    assert!(!messages.last().unwrap().is_retransmission);
    assert_eq!(vec!["complete", "unanswered"], exchanges.iter().map(|exchange| exchange.outcome).collect::<Vec<_>>());
}

#[test]
fn datagrams_that_records_fill_exactly_are_dtls() {
    let datagram = &psk_handshake()[4].1;

    assert_eq!(Likely::Yes, probe(datagram));
    assert_eq!(Likely::Maybe, probe(&datagram[..datagram.len() - 1]));
    assert_eq!(Likely::No, probe(&[datagram.as_slice(), b"x"].concat()));
    assert_eq!(Likely::No, probe(b"hello world, this is no record"));
}

proptest! {
    #[test]
    fn any_bytes_keep_the_contract(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 0_usize..400) {
        assert_answers_keep_the_contract(&DTLS, &bytes, cut);
    }

    #[test]
    fn damaged_records_keep_the_contract(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), cut in 0_usize..900) {
        let mut bytes: Vec<u8> = psk_handshake().into_iter().flat_map(|(_, bytes)| bytes).collect();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        assert_answers_keep_the_contract(&DTLS, &bytes, cut);
    }
}
