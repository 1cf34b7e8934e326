use super::*;
use crate::exchanges::{Acknowledgement, Event, Exchanges, Moment};
use crate::protocols::Pairing;
use proptest::prelude::*;

/// CONNECT of MQTT 5 §3.1: name, level 5, clean start, keep alive 60, no properties, client "abc" (by hand).
const CONNECT_5: &[u8] = b"\x10\x10\0\x04MQTT\x05\x02\0\x3c\0\0\x03abc";
/// Clean Session 0 (MQTT 3.1.1 §3.1.2.4).
const GOES_ON_4: &[u8] = b"\x10\x0f\0\x04MQTT\x04\0\0\x3c\0\x03abc";
/// Clean Session 0 in MQTT 3.1 (§3.1).
const GOES_ON_3: &[u8] = b"\x10\x11\0\x06MQIsdp\x03\0\0\x3c\0\x03abc";
const CONNECT_4: &[u8] = b"\x10\x0f\0\x04MQTT\x04\x02\0\x3c\0\x03abc";

fn decode(decoder: &mut Mqtt, bytes: &[u8], from: Side) -> (Message, Step) {
    let mut message = Message { wants_text: true, ..Message::default() };
    let step = decoder.next(Input::whole(bytes), from, &mut message);
    (message, step)
}

fn of_version(version: u8) -> Mqtt {
    Mqtt::new(&Decoding { mqtt_version: Some(version), ..Decoding::default() })
}

#[test]
fn connect_tells_version_client_and_keep_alive() {
    for (bytes, version, properties) in [(CONNECT_5, 5, 1), (CONNECT_4, 4, 0)] {
        let mut decoder = Mqtt::default();
        let (message, step) = decode(&mut decoder, bytes, Side::Client);

        assert_eq!(Step::Message { len: bytes.len() }, step);
        assert_eq!((Some(version), Some(60), Some("abc")), (message.version, message.keep_alive_s, message.client_identifier.get()));
        assert_eq!(properties, message.option_bytes);
        assert!(message.facts.is_opening && !message.facts.is_version_inferred);
    }
}

#[test]
fn publish_with_alias_names_the_topic_set_before() {
    let mut decoder = of_version(5);
    let (first, _) = decode(&mut decoder, b"\x32\x0e\0\x03a/b\0\x01\x03\x23\0\x01one", Side::Client);
    let (later, _) = decode(&mut decoder, b"\x32\x0b\0\0\0\x02\x03\x23\0\x01two", Side::Client);
    let (other_side, _) = decode(&mut decoder, b"\x32\x0b\0\0\0\x02\x03\x23\0\x01two", Side::Server);

    assert_eq!((Some("a/b"), Some(3), 3, 4), (first.topic_name.get(), first.topic_name_bytes, first.payload_bytes, first.option_bytes));
    assert_eq!((Some("a/b"), Some(0), Some(1)), (later.topic_name.get(), later.topic_name_bytes, later.topic_alias));
    assert!(other_side.facts.is_alias_unknown);
}

#[test]
fn version_5_is_inferred_where_properties_parse() {
    let (message, _) = decode(&mut Mqtt::default(), b"\x30\x07\0\x01a\0one", Side::Client);

    assert_eq!((3, Some(5), true), (message.payload_bytes, message.version, message.facts.is_version_inferred));

    let (message, _) = decode(&mut Mqtt::default(), b"\x30\x06\0\x01aone", Side::Client);
    assert_eq!((3, Some(4)), (message.payload_bytes, message.version));
}

#[test]
fn short_acknowledgements_leave_reason_and_properties_out() {
    // MQTT 5 §3.4.2.1: remaining length 2, 3 and 4
    for bytes in [&b"\x40\x02\0\x07"[..], b"\x40\x03\0\x07\x10", b"\x40\x04\0\x07\x10\0"] {
        let (message, step) = decode(&mut of_version(5), bytes, Side::Server);

        assert_eq!(Step::Message { len: bytes.len() }, step);
        assert_eq!(Some(7), message.message_id);
    }
}

#[test]
fn every_packet_type_of_both_versions_is_whole() {
    for (version, bytes) in [
        (5, &b"\x20\x03\0\0\0"[..]),
        (4, b"\x20\x02\0\0"),
        (5, b"\x20\x02\0\0"),
        (5, b"\x50\x02\0\x01"),
        (5, b"\x62\x02\0\x01"),
        (5, b"\x70\x02\0\x01"),
        (5, b"\x82\x09\0\x01\0\0\x03a/b\x01"),
        (4, b"\x82\x08\0\x01\0\x03a/b\x01"),
        (5, b"\x90\x04\0\x01\0\x01"),
        (4, b"\x90\x03\0\x01\x01"),
        (5, b"\xa2\x08\0\x01\0\0\x03a/b"),
        (4, b"\xa2\x07\0\x01\0\x03a/b"),
        (5, b"\xb0\x04\0\x01\0\0"),
        (4, b"\xb0\x02\0\x01"),
        (4, b"\xc0\0"),
        (4, b"\xd0\0"),
        (4, b"\xe0\0"),
        (5, b"\xe0\x02\x04\0"),
        (5, b"\xf0\x02\x18\0"),
    ] {
        let (message, step) = decode(&mut of_version(version), bytes, Side::Client);

        assert_eq!(Step::Message { len: bytes.len() }, step, "{bytes:02x?}");
        assert_eq!(bytes.len(), (message.header_bytes + message.option_bytes + message.payload_bytes) as usize);
    }
}

#[test]
fn what_breaks_the_format_is_malformed() {
    for bytes in [&b"\x00\0"[..], b"\x36\x05\0\x01a\0\x01", b"\x80\x02\0\x01", b"\x40\x01\0", b"\x30\x02\0\x09", b"\x30\x05\0\x01a\x01\x99"]
    {
        let (_, step) = decode(&mut of_version(5), bytes, Side::Client);
        assert!(matches!(step, Step::Malformed { .. }), "{bytes:02x?}: {step:?}");
    }
}

#[test]
fn a_packet_cut_by_the_snap_length_keeps_its_size() {
    let bytes = b"\x30\x64\0\x01a\0one";
    let mut message = Message::default();
    let step = of_version(5).next(Input { bytes, wire_bytes: 102 }, Side::Client, &mut message);

    assert_eq!((Step::Message { len: 102 }, 96), (step, message.payload_bytes));
}

#[test]
fn dup_of_other_packets_is_of_version_3() {
    // MQTT 3.1 §3.6, §3.8, §3.10; from MQTT 3.1.1 §2.2.2 on the flag is reserved
    for bytes in [&b"\x6a\x02\0\x01"[..], b"\x8a\x08\0\x01\0\x03a/b\x01", b"\xaa\x07\0\x01\0\x03a/b"] {
        let (message, step) = decode(&mut of_version(3), bytes, Side::Client);
        assert_eq!((Step::Message { len: bytes.len() }, Some(true)), (step, message.dup));
        let (inferred, _) = decode(&mut Mqtt::default(), bytes, Side::Client);
        assert_eq!((Some(3), true), (inferred.version, inferred.facts.is_version_inferred));
        for version in [4, 5] {
            assert!(matches!(decode(&mut of_version(version), bytes, Side::Client).1, Step::Malformed { .. }));
        }
    }
    assert_eq!(Some(false), decode(&mut of_version(3), b"\x62\x02\0\x01", Side::Client).0.dup);
    assert_eq!(None, decode(&mut of_version(4), b"\x62\x02\0\x01", Side::Client).0.dup);
}

fn moment(session: u32, time_ns: i64) -> Moment {
    Moment { session, frame: 1, time_ns, ..Moment::default() }
}

fn events(exchanges: &mut Exchanges) -> Vec<Event> {
    exchanges.take_events().collect()
}

#[test]
fn qos_2_flow_is_one_exchange_and_a_delivery_is_linked() {
    let (mut exchanges, mut publisher, mut subscriber) = (Exchanges::new(true), pairing::Flows::default(), pairing::Flows::default());
    let mut decoder = of_version(4);
    let mut place = |pairing: &mut pairing::Flows, bytes: &[u8], from, session, time_ns| {
        let (message, _) = decode(&mut decoder, bytes, from);
        pairing.place(&message, from, &moment(session, time_ns), &mut exchanges)
    };
    let published = place(&mut publisher, b"\x34\x09\0\x03q/2\0\x05hi", Side::Client, 0, 0);
    place(&mut publisher, b"\x50\x02\0\x05", Side::Server, 0, 10);
    place(&mut publisher, b"\x62\x02\0\x05", Side::Client, 0, 20);
    let completed = place(&mut publisher, b"\x70\x02\0\x05", Side::Server, 0, 30);
    // delivered at QoS 0 (trap 32)
    place(&mut subscriber, b"\x30\x07\0\x03q/2hi", Side::Server, 1, 25);

    assert!(published.is_data && matches!(published.acknowledgement, Acknowledgement::Expected));
    assert_eq!(published.exchange, completed.exchange);
    assert!(matches!(completed.acknowledgement, Acknowledgement::Given));
    let ended = exchanges.take_ended();
    assert_eq!((Some(10), Some(30), 4, "complete"), (ended[0].ack_rtt_ns, ended[0].rtt_ns, ended[0].messages, ended[0].outcome));
    assert_eq!((Some(25), Some(0)), (ended[1].delay_ns, ended[1].parent));
    assert!(events(&mut exchanges).iter().any(|event| matches!(event, Event::PublisherLeg { session: 1, .. })));
}

#[test]
fn dup_of_an_open_identifier_is_no_data() {
    let (mut exchanges, mut pairing, mut decoder) = (Exchanges::new(false), pairing::Flows::default(), of_version(4));
    let mut place = |bytes: &[u8], time_ns| {
        let (message, _) = decode(&mut decoder, bytes, Side::Client);
        pairing.place(&message, Side::Client, &moment(0, time_ns), &mut exchanges)
    };

    assert!(place(b"\x32\x06\0\x01a\0\x01x", 0).is_data);
    let again = place(b"\x3a\x06\0\x01a\0\x01x", 5);
    assert!(again.is_retransmission && !again.is_data);
}

#[test]
fn requests_and_pubrel_with_dup_are_sent_again() {
    let (mut exchanges, mut pairing, mut decoder) = (Exchanges::new(true), pairing::Flows::default(), of_version(3));
    let mut place = |bytes: &[u8], from, time_ns| {
        let (message, _) = decode(&mut decoder, bytes, from);
        pairing.place(&message, from, &moment(0, time_ns), &mut exchanges)
    };
    let published = place(b"\x34\x06\0\x01a\0\x01x", Side::Client, 0);
    place(b"\x50\x02\0\x01", Side::Server, 1);
    place(b"\x62\x02\0\x01", Side::Client, 2);
    let released = place(b"\x6a\x02\0\x01", Side::Client, 20);
    place(b"\x70\x02\0\x01", Side::Server, 21);
    // the first of its identifier that the capture shows, and its repetition
    let subscribed = place(b"\x8a\x06\0\x09\0\x01t\x01", Side::Client, 30);
    let again = place(b"\x8a\x06\0\x09\0\x01t\x01", Side::Client, 40);
    place(b"\x90\x03\0\x09\x01", Side::Server, 41);

    assert_eq!((published.exchange, true), (released.exchange, released.is_retransmission));
    assert_eq!((subscribed.exchange, false, true), (again.exchange, subscribed.is_retransmission, again.is_retransmission));
    let ended = exchanges.take_ended();
    assert_eq!(
        vec![("complete", 5, 1), ("complete", 3, 1)],
        ended.iter().map(|ended| (ended.outcome, ended.messages, ended.retransmissions)).collect::<Vec<_>>()
    );
}

/// What the subscriber got of a PUBLISH with RETAIN that is sent at 5 and again at 20, and delivered with RETAIN at 12 and at 25: the delays. Before, the
/// subscriber sends these packets, the last one at 10.
fn delays_with_retain(asks: &[&[u8]], level: u8) -> [Option<i64>; 2] {
    let (mut exchanges, mut publisher, mut subscriber) = (Exchanges::new(true), pairing::Flows::default(), pairing::Flows::default());
    let (mut decoder, mut asking) = (of_version(4), of_version(level));
    let [first, second] = [b"\x31\x04\0\x01tx", b"\x31\x04\0\x01ty"].map(|bytes| decode(&mut decoder, bytes, Side::Client).0);
    let mut place = |pairing: &mut pairing::Flows, message: &Message, from, time_ns| {
        let session = u32::from(from == Side::Server);
        pairing.place(message, from, &moment(session, time_ns), &mut exchanges);
    };
    place(&mut publisher, &first, Side::Client, 5);
    for ask in asks {
        place(&mut subscriber, &decode(&mut asking, ask, Side::Client).0, Side::Client, 10);
    }
    place(&mut subscriber, &first, Side::Server, 12);
    place(&mut publisher, &second, Side::Client, 20);
    place(&mut subscriber, &second, Side::Server, 25);
    let ended = exchanges.take_ended();
    let mut delivered =
        ended.iter().filter(|exchange| exchange.session == 1 && exchange.kind == "PUBLISH QoS 0").map(|exchange| exchange.delay_ns);
    [delivered.next().unwrap(), delivered.next().unwrap()]
}

/// The same PUBLISH is sent at 5, 20, 40 and 60; a subscriber's packets come at 10, 11 and on, and each but the first PUBLISH is delivered 2 later: the delays.
fn delays_of_the_same(subscriber_s: &[(Side, &[u8])], level: u8) -> Vec<Option<i64>> {
    let (mut exchanges, mut publisher, mut subscriber) = (Exchanges::new(true), pairing::Flows::default(), pairing::Flows::default());
    let publish = decode(&mut of_version(4), b"\x30\x04\0\x01tx", Side::Client).0;
    publisher.place(&publish, Side::Client, &moment(0, 5), &mut exchanges);
    let mut decoder = of_version(level);
    for (time_ns, (from, bytes)) in (10..).zip(subscriber_s) {
        subscriber.place(&decode(&mut decoder, bytes, *from).0, *from, &moment(1, time_ns), &mut exchanges);
    }
    for time_ns in [20, 40, 60] {
        publisher.place(&publish, Side::Client, &moment(0, time_ns), &mut exchanges);
        subscriber.place(&publish, Side::Server, &moment(1, time_ns + 2), &mut exchanges);
    }
    let ended = exchanges.take_ended();
    ended.iter().filter(|exchange| exchange.session == 1 && exchange.kind == "PUBLISH QoS 0").map(|exchange| exchange.delay_ns).collect()
}

#[test]
fn what_was_published_before_the_subscription_is_delivered_to_nobody() {
    // MQTT 5 §4.1, §3.1.2.4, §3.2.2.1.1: Clean Start, or no session present, means that there is no subscription before SUBSCRIBE
    let (fresh, goes_on) = (&b"\x20\x02\0\0"[..], &b"\x20\x02\x01\0"[..]);
    let subscribe = (Side::Client, &b"\x82\x06\0\x01\0\x01t\0"[..]);
    let at_once = vec![Some(2); 3];
    assert_eq!(at_once, delays_of_the_same(&[(Side::Client, CONNECT_4), subscribe], 4));
    assert_eq!(at_once, delays_of_the_same(&[(Side::Client, GOES_ON_4), (Side::Server, fresh), subscribe], 4));
    // a subscription that the server has by itself
    assert_eq!(at_once, delays_of_the_same(&[(Side::Client, CONNECT_4)], 4));
    // a session of before, which may have the publication in store; so may one whose beginning is not captured; MQTT 3.1 does not tell
    let from_store = vec![Some(17), Some(22), Some(22)];
    assert_eq!(from_store, delays_of_the_same(&[(Side::Client, GOES_ON_4), (Side::Server, goes_on), subscribe], 4));
    assert_eq!(from_store, delays_of_the_same(&[subscribe], 4));
    assert_eq!(from_store, delays_of_the_same(&[(Side::Client, GOES_ON_3), (Side::Server, fresh), subscribe], 3));
}

#[test]
fn a_subscription_need_not_wait_for_connack() {
    // MQTT 5 §3.1.4: clients may send packets at once behind CONNECT; here another SUBSCRIBE comes before what the first one brings
    let (mut exchanges, mut publisher, mut subscriber) = (Exchanges::new(true), pairing::Flows::default(), pairing::Flows::default());
    let publish = decode(&mut of_version(4), b"\x30\x04\0\x01tx", Side::Client).0;
    let mut decoder = of_version(4);
    let mut place = |from, bytes: &[u8], time_ns| match from {
        None => publisher.place(&publish, Side::Client, &moment(0, time_ns), &mut exchanges),
        Some(from) => subscriber.place(&decode(&mut decoder, bytes, from).0, from, &moment(1, time_ns), &mut exchanges),
    };
    place(Some(Side::Client), GOES_ON_4, 10);
    place(Some(Side::Client), b"\x82\x06\0\x01\0\x01t\0", 11);
    place(None, &[], 12);
    place(Some(Side::Server), b"\x20\x02\0\0", 13);
    place(Some(Side::Client), b"\x82\x06\0\x02\0\x01u\0", 14);
    place(Some(Side::Server), b"\x30\x04\0\x01tx", 15);

    assert_eq!(vec![3], exchanges.take_ended().iter().filter_map(|exchange| exchange.delay_ns).collect::<Vec<_>>());
}

#[test]
fn what_is_forwarded_with_retain_is_linked_and_what_was_kept_is_not() {
    // MQTT 5 §3.8.3.1, bit 3 of the options: Retain As Published; §3.3.1.3: else RETAIN is that of a message that the server has kept
    let (as_published, cleared) = (&b"\x82\x07\0\x01\0\0\x01t\x08"[..], &b"\x82\x07\0\x01\0\0\x01t\0"[..]);
    assert_eq!([None, Some(5)], delays_with_retain(&[as_published], 5));
    assert_eq!([None, None], delays_with_retain(&[cleared], 5));
    assert_eq!([None, Some(5)], delays_with_retain(&[as_published, cleared], 5));
    // a bridge of Mosquitto's, with the topmost bit of the level set; another client of version 3.1.1
    let (bridge, subscribe) = (&b"\x10\x0f\0\x04MQTT\x84\x02\0\x3c\0\x03abc"[..], &b"\x82\x06\0\x01\0\x01t\0"[..]);
    assert_eq!([None, Some(5)], delays_with_retain(&[bridge, subscribe], 4));
    assert_eq!([None, None], delays_with_retain(&[CONNECT_4, subscribe], 4));
    // a session that goes on (Clean Session 0): nothing is sent for a new subscription; a new one, in which nobody has subscribed yet
    assert_eq!([Some(7), Some(5)], delays_with_retain(&[GOES_ON_4], 4));
    assert_eq!([None, Some(5)], delays_with_retain(&[CONNECT_4], 4));
}

#[test]
fn a_packet_is_a_boundary_wherever_the_bytes_behind_it_end() {
    // MQTT 5 §3.3, §3.4, §3.12: PUBLISH QoS 0 and 1 to "t", PUBACK 7, PINGREQ; a length of two bytes
    let (publish, long) = (&b"\x30\x05\0\x01t\0x"[..], &b"\x32\x85\x01\0\x01t\0\x07\0"[..]);
    for next in [publish, long, b"\x40\x02\0\x07", b"\xc0\0", CONNECT_5] {
        for cut in 0..=next.len() {
            let bytes = [publish, &next[..cut]].concat();
            assert_eq!(Some(true), of_version(5).is_boundary(&bytes, Side::Client), "{bytes:02x?}");
        }
    }
    // flags that PUBACK has not, SUBACK from a client, a message identifier 0
    for next in [&b"\x41\x02"[..], b"\x90\x03", b"\x40\x02\0\0"] {
        assert_eq!(Some(false), of_version(5).is_boundary(&[publish, next].concat(), Side::Client), "{next:02x?}");
    }
}

#[test]
fn a_word_at_the_end_of_what_is_there_is_no_boundary() {
    // "pppp" is a PUBCOMP's header and identifier, "bbbb" a PUBREL's: the reason behind them (MQTT 5 §3.7.2.1) would be 'p' or 'b'
    for letter in [b"p", b"b", b"@", b"P"] {
        for (from, length) in [(Side::Client, 4), (Side::Server, 4), (Side::Client, 5), (Side::Server, 114)] {
            assert_ne!(Some(true), of_version(5).is_boundary(&letter.repeat(length), from), "{length} of {letter:?}");
        }
    }
    // one that was refused (reason 0x92, packet identifier not found) and one without reason
    for whole in [&b"\x70\x03\0\x07\x92"[..], b"\x70\x02\0\x07"] {
        assert_eq!(Some(true), of_version(5).is_boundary(whole, Side::Server));
    }
}

proptest! {
    #[test]
    fn any_bytes_get_one_of_three_answers(bytes in proptest::collection::vec(any::<u8>(), 0..80), first in any::<u8>(), length in 0u8..60, version in 0u8..6) {
        let mut bytes = bytes;
        if bytes.len() > 2 {
            (bytes[0], bytes[1]) = (first, length);
        }
        let mut decoder = Mqtt { version: Some(version).filter(|version| *version > 2), ..Mqtt::default() };
        let (message, step) = decode(&mut decoder, &bytes, Side::Client);
        match step {
            Step::Message { len } => {
                prop_assert!(len > 0 && len <= bytes.len());
                prop_assert_eq!(len, (message.header_bytes + message.option_bytes + message.payload_bytes + message.opaque_bytes) as usize);
            }
            Step::NeedMore { at_least } => prop_assert!(at_least > bytes.len()),
            Step::Malformed { len, .. } => prop_assert!(len > 0 && len <= bytes.len().max(1)),
        }
        let _ = decoder.is_boundary(&bytes, Side::Client);
    }
}
