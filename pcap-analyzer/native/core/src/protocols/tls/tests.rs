use super::testing::{assert_answers_keep_the_contract, client_hello, decode, decode_all, extension, server_hello, vector};
use super::*;
use crate::exchanges::{Exchange, Exchanges, Moment};
use crate::protocols::Decoding;
use proptest::prelude::*;

fn record(kind: u8, fragment: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &vector(2, fragment)].concat()
}

fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &vector(3, body)].concat()
}

fn hello() -> Vec<u8> {
    let names = extension(0, &vector(2, &[&[0][..], &vector(2, b"broker.example")].concat()));
    let alpn = extension(16, &vector(2, &[vector(1, b"mqtt"), vector(1, b"x-amzn-mqtt-ca")].concat()));
    record(22, &handshake(1, &client_hello(1, b"id", None, &[names, alpn])))
}

/// A conversation: who sends which record.
fn run(records: &[(Side, Vec<u8>)]) -> (Vec<Message>, Vec<Exchange>) {
    let mut decoder = (TLS.decoder)(&Decoding::default());
    let mut pairing = (TLS.pairing)();
    let mut exchanges = Exchanges::new(true);
    let mut messages = Vec::new();
    for (at, (from, bytes)) in (1..).zip(records) {
        for message in decode_all(decoder.as_mut(), bytes, *from) {
            let moment = Moment { frame: at, time_ns: at as i64 * 1000, ..Moment::default() };
            pairing.place(&message, *from, &moment, &mut exchanges);
            messages.push(message);
        }
    }
    pairing.end(&mut exchanges);
    (messages, exchanges.take_ended())
}

#[test]
fn a_client_hello_shows_names_and_protocols() {
    let (step, message) = decode(&mut TlsDecoder::new(), &hello(), Side::Client);

    assert_eq!(Step::Message { len: hello().len() }, step);
    assert_eq!(("Handshake", "Client Hello"), (message.kind, message.variant));
    assert_eq!(Some("Client Hello"), message.handshake_types.get());
    assert_eq!(Some("broker.example"), message.server_name.get());
    assert_eq!(Some("mqtt,x-amzn-mqtt-ca"), message.alpn.get());
    assert_eq!((Some(22), Some(0x0303)), (message.content_type, message.version));
    assert_eq!(hello().len() as u32, message.security_bytes);
    assert!(message.facts.is_handshake);
    assert_eq!(Likely::Yes, probe(&hello()));
}

/// RFC 5246 §7.3: the full handshake, four flights, and data of 10 bytes under AES-GCM.
#[test]
fn tls_1_2_has_four_flights_and_shows_certificates() {
    use Side::{Client, Server};
    let flight = [handshake(2, &server_hello(0x0303, b"new", 0xc02b, &[])), handshake(11, &[0, 0, 1, 7]), handshake(14, &[])].concat();
    let (messages, exchanges) = run(&[
        (Client, hello()),
        (Server, record(22, &flight)),
        (
            Client,
            [record(22, &[handshake(11, &[0, 0, 1, 7]), handshake(16, &[1])].concat()), record(20, &[1]), record(22, &[0xee; 40])].concat(),
        ),
        (Server, [record(20, &[1]), record(22, &[0xee; 40])].concat()),
        (Client, record(23, &[0; 34])),
        (Server, record(21, &[0; 26])),
    ]);

    assert_eq!(Some("Server Hello,Certificate,Server Hello Done"), messages[1].handshake_types.get());
    assert_eq!((Some("TLS 1.2"), Some("certificate")), (messages[1].facts.version, messages[1].facts.authentication));
    assert_eq!(Some("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"), messages[1].cipher_suite.get());
    assert_eq!(Some("client certificate"), messages[2].facts.authentication);
    assert_eq!((ENCRYPTED, Some(16)), (messages[4].variant, messages[4].plaintext_bytes));
    let data = &messages[7];
    assert_eq!((Some(10), 29, 10), (data.plaintext_bytes, data.security_bytes, data.opaque_bytes));
    assert!(data.facts.is_encrypted && !data.facts.is_handshake);
    assert_eq!((ENCRYPTED, None), (messages[8].variant, messages[8].alert.get()));

    let [exchange] = &exchanges[..] else { panic!("{exchanges:?}") };
    assert_eq!(("handshake", "complete", Some(4), 7), (exchange.kind, exchange.outcome, exchange.parts, exchange.messages));
    assert_eq!((Some(1000), Some(3000)), (exchange.ack_rtt_ns, exchange.rtt_ns));
    assert_eq!("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", exchange.result);
}

#[test]
fn an_echoed_session_id_or_a_short_handshake_is_a_resumption() {
    use Side::{Client, Server};
    let echoed = run(&[(Client, hello()), (Server, record(22, &handshake(2, &server_hello(0x0303, b"id", 0xc02b, &[]))))]).0;
    let short = run(&[
        (Client, hello()),
        (Server, [record(22, &handshake(2, &server_hello(0x0303, b"", 0xc02b, &[]))), record(20, &[1]), record(22, &[0; 40])].concat()),
        (Client, [record(20, &[1]), record(22, &[0; 40])].concat()),
    ]);

    assert_eq!(Some("resumption"), echoed[1].facts.authentication);
    assert_eq!((None, Some("resumption")), (short.0[1].facts.authentication, short.0[2].facts.authentication));
    assert_eq!(("complete", Some(3), Some(2000)), (short.1[0].outcome, short.1[0].parts, short.1[0].rtt_ns));
}

fn version_13() -> Vec<u8> {
    extension(43, &[3, 4])
}

/// RFC 8446 §2: hidden handshake records, among them a Finished of 36 bytes, and data of 10 bytes; the client's ChangeCipherSpec comes early.
#[test]
fn tls_1_3_counts_records_up_to_the_clients_finished_as_handshake() {
    use Side::{Client, Server};
    let (messages, exchanges) = run(&[
        (Client, hello()),
        (Server, [record(22, &handshake(2, &server_hello(0x0303, b"id", 0x1301, &[version_13()]))), record(20, &[1])].concat()),
        (Client, record(20, &[1])),
        (Server, record(23, &[0; 900])),
        (Client, [record(23, &[0; 53]), record(23, &[0; 27])].concat()),
        (Server, record(23, &[0; 200])),
    ]);

    assert_eq!((Some("TLS 1.3"), Some("certificate")), (messages[1].facts.version, messages[1].facts.authentication));
    assert_eq!(
        ("Application Data", ENCRYPTED, 905, Some(883)),
        (messages[4].kind, messages[4].variant, messages[4].security_bytes, messages[4].plaintext_bytes)
    );
    assert_eq!((ENCRYPTED, true), (messages[5].variant, messages[5].facts.is_handshake));
    assert_eq!(
        ("", Some(10), 22, 10),
        (messages[6].variant, messages[6].plaintext_bytes, messages[6].security_bytes, messages[6].opaque_bytes)
    );
    assert!(!messages[7].facts.is_handshake);
    let [exchange] = &exchanges[..] else { panic!("{exchanges:?}") };
    assert_eq!(("complete", Some(3), Some(1000), Some(4000)), (exchange.outcome, exchange.parts, exchange.ack_rtt_ns, exchange.rtt_ns));
}

/// What rustls sends with a client certificate: the whole flight in one record, and behind it a CONNECT of 26 bytes; then the same with the flight lost.
#[test]
fn data_behind_a_flight_in_one_record_is_data() {
    use Side::{Client, Server};
    let server = || [record(22, &handshake(2, &server_hello(0x0303, b"id", 0x1301, &[version_13()]))), record(23, &[0; 900])].concat();
    let (messages, exchanges) =
        run(&[(Client, hello()), (Server, server()), (Client, record(23, &[0; 1000])), (Client, record(23, &[0; 43]))]);

    assert_eq!(vec![true, false], messages[3..].iter().map(|message| message.facts.is_handshake).collect::<Vec<_>>());
    assert_eq!(("complete", Some(2000)), (exchanges[0].outcome, exchanges[0].rtt_ns));

    let (messages, exchanges) = run(&[(Client, hello()), (Server, server()), (Client, record(23, &[0; 43]))]);
    assert_eq!((false, Some(26)), (messages[3].facts.is_handshake, messages[3].plaintext_bytes));
    assert_eq!(("complete", None), (exchanges[0].outcome, exchanges[0].rtt_ns));
}

#[test]
fn a_hello_retry_request_belongs_to_the_handshake_and_is_no_answer() {
    use Side::{Client, Server};
    let mut retry = server_hello(0x0303, b"id", 0x1301, &[version_13()]);
    retry[2..34].copy_from_slice(&[
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
        0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    ]);
    let (messages, exchanges) = run(&[
        (Client, hello()),
        (Server, record(22, &handshake(2, &retry))),
        (Client, [record(20, &[1]), hello()].concat()),
        (Server, record(22, &handshake(2, &server_hello(0x0303, b"id", 0x1301, &[version_13()])))),
        (Server, record(23, &[0; 900])),
        (Client, record(23, &[0; 53])),
    ]);

    assert_eq!("Hello Retry Request", messages[1].variant);
    let [exchange] = &exchanges[..] else { panic!("{exchanges:?}") };
    assert_eq!(("complete", Some(5), Some(3000), Some(5000)), (exchange.outcome, exchange.parts, exchange.ack_rtt_ns, exchange.rtt_ns));
}

/// RFC 8446 §4.2.11: the age of an identity that was shared outside is 0.
#[test]
fn a_selected_key_is_a_ticket_where_it_has_an_age() {
    let identities =
        |age: u32| extension(41, &[vector(2, &[vector(2, b"key"), age.to_be_bytes().to_vec()].concat()), vector(2, &[0; 33])].concat());
    let authentication = |age| {
        let mut decoder = TlsDecoder::new();
        decode(&mut decoder, &record(22, &handshake(1, &client_hello(1, b"", None, &[identities(age)]))), Side::Client);
        let hello = server_hello(0x0303, b"", 0x1301, &[version_13(), extension(41, &[0, 0])]);
        decode(&mut decoder, &record(22, &handshake(2, &hello)), Side::Server).1.facts.authentication
    };

    assert_eq!((Some("PSK"), Some("resumption")), (authentication(0), authentication(7)));
}

#[test]
fn a_fatal_alert_resets_the_handshake() {
    let (messages, exchanges) = run(&[(Side::Client, hello()), (Side::Server, record(21, &[2, 40]))]);

    assert_eq!((Some("fatal handshake_failure"), "handshake_failure"), (messages[1].alert.get(), messages[1].variant));
    assert_eq!(("reset", 2), (exchanges[0].outcome, exchanges[0].messages));
}

#[test]
fn without_a_handshake_only_the_header_is_known_to_be_security() {
    let (_, message) = decode(&mut TlsDecoder::new(), &record(23, &[0; 30]), Side::Client);

    assert_eq!((5, 30, None), (message.security_bytes, message.opaque_bytes, message.plaintext_bytes));
    assert!(message.facts.is_encrypted);
}

/// RFC 8446 §5.1: only TLS 1.2's number is shared.
#[test]
fn records_tell_old_versions_without_a_handshake() {
    let version = |number| decode(&mut TlsDecoder::new(), &[23, 3, number, 0, 1, 0], Side::Client).1.facts.version;

    assert_eq!([Some("TLS 1.0"), Some("TLS 1.1"), None], [version(1), version(2), version(3)]);
}

/// RFC 8448 §3, "Simple 1-RTT Handshake": its ServerHello, and records of the lengths that it prints.
#[test]
fn the_published_trace_has_the_published_lengths() {
    use Side::{Client, Server};
    const SERVER_HELLO: &str = "020000560303a6af06a4121860dc5e6e60249cd34c95930c8ac5cb1434dac155772ed3e2692800130100002e00330024001d0020\
                                c9828876112095fe66762bdbf7c672e156d6cc253b833df1dd69b1b04e751f0f002b00020304";
    let hello: Vec<u8> = (0..SERVER_HELLO.len()).step_by(2).map(|at| u8::from_str_radix(&SERVER_HELLO[at..at + 2], 16).unwrap()).collect();
    let data = |length: usize| record(23, &vec![0; length]);
    let (messages, _) = run(&[
        (Client, self::hello()),
        (Server, [record(22, &hello), data(674)].concat()),
        (Client, data(53)),
        (Server, data(222)),
        (Client, data(67)),
        (Server, data(67)),
        (Client, data(19)),
    ]);

    assert_eq!(Some("TLS_AES_128_GCM_SHA256"), messages[1].cipher_suite.get());
    let contents: Vec<_> = messages[2..].iter().map(|message| (message.variant, message.plaintext_bytes)).collect();
    let hidden = |bytes| (ENCRYPTED, Some(bytes));
    let open = |bytes| ("", Some(bytes));
    assert_eq!(vec![hidden(657), hidden(36), open(205), open(50), open(50), open(2)], contents);
}

#[test]
fn clear_text_before_tls_is_given_up_to_the_first_record() {
    let bytes = [b"220 ready\r\n".to_vec(), hello()].concat();

    assert!(matches!(decode(&mut TlsDecoder::new(), &bytes, Side::Server).0, Step::Malformed { len: 11, .. }));
    assert_eq!(Some(true), TlsDecoder::new().is_boundary(&bytes[11..], Side::Server));
    assert_eq!(Some(false), TlsDecoder::new().is_boundary(&bytes, Side::Server));
}

/// RFC 5246 Appendix E.2.
#[test]
fn a_client_hello_of_ssl_2_0_is_recognised() {
    let hello = [&[0x80, 28, 1, 3, 1, 0, 3, 0, 0, 0, 16][..], &[0, 0, 5], &[7; 16]].concat();
    let (step, message) = decode(&mut TlsDecoder::new(), &hello, Side::Client);

    assert_eq!((Step::Message { len: 30 }, "Client Hello", 30), (step, message.variant, message.security_bytes));
    assert_eq!((Likely::Yes, Some(SSL_2_0)), (probe(&hello), message.version));
    assert_eq!(Likely::No, probe(&[&[0x80, 29][..], &hello[2..]].concat()));
}

/// The records of a handshake, to be fed in other ways.
fn conversation() -> Vec<u8> {
    [
        hello(),
        record(22, &handshake(2, &server_hello(0x0303, b"id", 0x1301, &[version_13()]))[..20]),
        record(22, &handshake(2, &server_hello(0x0303, b"id", 0x1301, &[version_13()]))[20..]),
        record(20, &[1]),
        record(23, &[0; 300]),
        record(21, &[1, 0]),
    ]
    .concat()
}

#[test]
fn records_byte_by_byte_are_the_same_as_whole() {
    let bytes = conversation();
    let whole = decode_all(&mut TlsDecoder::new(), &bytes, Side::Server);
    let (mut decoder, mut messages, mut at) = (TlsDecoder::new(), Vec::new(), 0);
    for end in 1..=bytes.len() {
        let (step, message) = decode(&mut decoder, &bytes[at..end], Side::Server);
        match step {
            Step::Message { len } => {
                at += len;
                messages.push(message);
            }
            Step::NeedMore { at_least } => assert!(at_least > end - at),
            Step::Malformed { .. } => panic!("{step:?}"),
        }
    }

    assert_eq!(6, messages.len());
    assert_eq!(whole, messages);
}

proptest! {
    #[test]
    fn any_bytes_keep_the_contract(bytes in proptest::collection::vec(any::<u8>(), 0..400), cut in 0_usize..400) {
        assert_answers_keep_the_contract(&TLS, &bytes, cut);
    }

    #[test]
    fn damaged_records_keep_the_contract(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), cut in 0_usize..700) {
        let mut bytes = conversation();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        assert_answers_keep_the_contract(&TLS, &bytes, cut);
    }
}
