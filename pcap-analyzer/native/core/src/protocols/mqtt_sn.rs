//! MQTT-SN 1.2 (IBM, 2013) in datagrams.
//!
//! Byte columns: the data of a PUBLISH is payload, all else is header. Columns and pairing are MQTT's: a message has the number of the MQTT control
//! packet whose part it plays. A topic ID is resolved by the REGISTER or SUBSCRIBE that agreed it; else it stands as "#n". A message that a forwarder
//! encapsulates (§5.5) is shown as what it is, with the encapsulation among its header bytes; each wireless node has topics and exchanges of its own.

use super::mqtt::{Flows, AUTH, REGACK, REGISTER, WILLMSGRESP, WILLMSGUPD, WILLTOPICRESP, WILLTOPICUPD};
use super::{Carrier, Decoder, Input, Likely, Malformed, Pairing, Port, Protocol, Step};
use crate::bytes::{count, hash, Cursor, Short};
use crate::exchanges::{Exchanges, Moment, Placement};
use crate::message::{Message, Side};
use rustc_hash::FxHashMap;

/// MQTT-SN.
pub const MQTT_SN: Protocol = Protocol {
    name: "mqttsn",
    decode_as: "mqttsn",
    standards: &["MQTT-SN 1.2 (IBM, 2013)"],
    carrier: Carrier::Datagram,
    is_security: false,
    carries: None,
    ports: &[Port::Udp(1883), Port::Udp(1884)],
    probe,
    connection_id: None,
    decoder: |_| Box::new(Nodes::new(Topics::default)),
    pairing: || Box::new(Nodes::new(Flows::over_datagrams)),
    wireshark: &[
        ("mqttsn.msg.id", "message_id"),
        ("mqttsn.dup", "dup"),
        ("mqttsn.retain", "retain"),
        ("mqttsn.client.id", "client_identifier"),
    ],
};

/// One type of message (§5.2.2, Table 3).
struct Kind {
    number: u8,
    name: &'static str,
    /// The MQTT control packet whose part it plays; 0 where there is none.
    mqtt: u8,
    fields: Fields,
}

/// What follows the type (§5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fields {
    /// Flags, ProtocolId, Duration, ClientId.
    Connect,
    /// ReturnCode.
    ReturnCode,
    /// TopicId, MsgId, TopicName.
    Register,
    /// TopicId, MsgId, ReturnCode.
    TopicAck,
    /// Flags, TopicId, MsgId, Data.
    Publish,
    /// MsgId.
    MsgId,
    /// Flags, MsgId, TopicName or TopicId.
    Subscribe,
    /// ClientId, of a client that sleeps.
    Ping,
    /// Flags, TopicId, MsgId, ReturnCode.
    SubAck,
    /// Anything.
    Other,
}

const KINDS: &[Kind] = &[
    Kind { number: 0x00, name: "ADVERTISE", mqtt: 0, fields: Fields::Other },
    Kind { number: 0x01, name: "SEARCHGW", mqtt: 0, fields: Fields::Other },
    Kind { number: 0x02, name: "GWINFO", mqtt: 0, fields: Fields::Other },
    Kind { number: 0x04, name: "CONNECT", mqtt: 1, fields: Fields::Connect },
    Kind { number: 0x05, name: "CONNACK", mqtt: 2, fields: Fields::ReturnCode },
    Kind { number: 0x06, name: "WILLTOPICREQ", mqtt: AUTH, fields: Fields::Other },
    Kind { number: 0x07, name: "WILLTOPIC", mqtt: AUTH, fields: Fields::Other },
    Kind { number: 0x08, name: "WILLMSGREQ", mqtt: AUTH, fields: Fields::Other },
    Kind { number: 0x09, name: "WILLMSG", mqtt: AUTH, fields: Fields::Other },
    Kind { number: 0x0a, name: "REGISTER", mqtt: REGISTER, fields: Fields::Register },
    Kind { number: 0x0b, name: "REGACK", mqtt: REGACK, fields: Fields::TopicAck },
    Kind { number: 0x0c, name: "PUBLISH", mqtt: 3, fields: Fields::Publish },
    Kind { number: 0x0d, name: "PUBACK", mqtt: 4, fields: Fields::TopicAck },
    Kind { number: 0x0e, name: "PUBCOMP", mqtt: 7, fields: Fields::MsgId },
    Kind { number: 0x0f, name: "PUBREC", mqtt: 5, fields: Fields::MsgId },
    Kind { number: 0x10, name: "PUBREL", mqtt: 6, fields: Fields::MsgId },
    Kind { number: 0x12, name: "SUBSCRIBE", mqtt: 8, fields: Fields::Subscribe },
    Kind { number: 0x13, name: "SUBACK", mqtt: 9, fields: Fields::SubAck },
    Kind { number: 0x14, name: "UNSUBSCRIBE", mqtt: 10, fields: Fields::Subscribe },
    Kind { number: 0x15, name: "UNSUBACK", mqtt: 11, fields: Fields::MsgId },
    Kind { number: 0x16, name: "PINGREQ", mqtt: 12, fields: Fields::Ping },
    Kind { number: 0x17, name: "PINGRESP", mqtt: 13, fields: Fields::Other },
    Kind { number: 0x18, name: "DISCONNECT", mqtt: 14, fields: Fields::Other },
    Kind { number: 0x1a, name: "WILLTOPICUPD", mqtt: WILLTOPICUPD, fields: Fields::Other },
    Kind { number: 0x1b, name: "WILLTOPICRESP", mqtt: WILLTOPICRESP, fields: Fields::ReturnCode },
    Kind { number: 0x1c, name: "WILLMSGUPD", mqtt: WILLMSGUPD, fields: Fields::Other },
    Kind { number: 0x1d, name: "WILLMSGRESP", mqtt: WILLMSGRESP, fields: Fields::ReturnCode },
    Kind { number: ENCAPSULATED, name: "Encapsulated", mqtt: 0, fields: Fields::Other },
];

fn kind(number: u8) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.number == number)
}

/// Length and MsgType (§5.2).
#[derive(Debug, Clone, Copy)]
struct Header {
    bytes: usize,
    length: usize,
    number: u8,
}

fn header(bytes: &[u8]) -> Result<Header, Short> {
    let mut cursor = Cursor::new(bytes);
    let length = match cursor.u8()? {
        1 => usize::from(cursor.u16()?),
        short => usize::from(short),
    };
    let number = cursor.u8()?;
    Ok(Header { bytes: cursor.offset(), length, number })
}

/// A message of a wireless node's behind a forwarder's header (§5.5): Length, which counts that header alone, MsgType, Ctrl, Wireless Node Id.
const ENCAPSULATED: u8 = 0xfe;

/// The wireless node that an encapsulated message belongs to, where the header of the encapsulation is there.
fn wireless_node<'a>(head: &Header, bytes: &'a [u8]) -> Option<&'a [u8]> {
    bytes.get(head.bytes + 1..head.length).filter(|_| head.number == ENCAPSULATED)
}

/// What there is of each of the nodes that share an address: the client there, or those that a forwarder speaks for.
#[derive(Debug)]
struct Nodes<T> {
    own: T,
    /// By the hash of the wireless node's ID.
    forwarded: FxHashMap<u64, T>,
    make: fn() -> T,
}

/// Wireless nodes that are remembered at most behind a forwarder: more come from damage.
const NODES: usize = 4096;

impl<T> Nodes<T> {
    fn new(make: fn() -> T) -> Self {
        Self { own: make(), forwarded: FxHashMap::default(), make }
    }

    fn of(&mut self, node_hash: u64) -> Option<&mut T> {
        if node_hash == 0 {
            return Some(&mut self.own);
        }
        if self.forwarded.len() >= NODES && !self.forwarded.contains_key(&node_hash) {
            return None;
        }
        Some(self.forwarded.entry(node_hash).or_insert_with(self.make))
    }
}

impl Pairing for Nodes<Flows> {
    fn place(&mut self, message: &Message, from: Side, at: &Moment, exchanges: &mut Exchanges) -> Placement {
        self.of(message.node_hash).map_or_else(Placement::default, |flows| flows.place(message, from, at, exchanges))
    }

    fn end(&mut self, exchanges: &mut Exchanges) {
        let mut nodes: Vec<(u64, Flows)> = self.forwarded.drain().collect();
        nodes.sort_unstable_by_key(|(node_hash, _)| *node_hash);
        self.own.end(exchanges);
        nodes.iter_mut().for_each(|(_, flows)| flows.end(exchanges));
    }
}

/// A topic that is agreed on but not yet acknowledged, by message ID; and topics by their ID.
#[derive(Debug, Default)]
struct Topics {
    asked: FxHashMap<(u8, u16), Box<[u8]>>,
    topics: FxHashMap<u16, Box<[u8]>>,
}

/// Topics asked for that are remembered at most; a client that never gets an answer cannot fill the memory.
const ASKED: usize = 4096;

impl Decoder for Nodes<Topics> {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let head = header(input.bytes);
        let node = head.as_ref().ok().and_then(|head| wireless_node(head, input.bytes));
        let (Ok(head), Some(node)) = (head, node) else { return self.own.next(input, from, message) };
        message.node_hash = hash(node) | 1;
        let inside = input.bytes.get(head.length..).unwrap_or(&[]);
        let inside = Input { bytes: inside, wire_bytes: input.wire_bytes - head.length };
        let Some(topics) = self.of(message.node_hash) else { return self.own.next(input, from, message) };
        let step = topics.next(inside, from, message);
        if let Step::Message { .. } = step {
            message.row.header_bytes += count(head.length);
            message.payload_range = message.payload_range.start + head.length..message.payload_range.end + head.length;
        }
        step.behind(head.length)
    }
}

impl Step {
    /// The step of what begins `offset` bytes further on.
    const fn behind(self, offset: usize) -> Self {
        match self {
            Self::Message { len } => Self::Message { len: len + offset },
            Self::NeedMore { at_least } => Self::NeedMore { at_least: at_least + offset },
            Self::Malformed { len, why } => Self::Malformed { len: len + offset, why: Malformed { offset: why.offset + offset, ..why } },
        }
    }
}

impl Topics {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let head = match header(input.bytes) {
            Ok(head) => head,
            Err(short) => return Step::NeedMore { at_least: short.needed.max(input.bytes.len() + 1) },
        };
        let Some(kind) = kind(head.number) else { return malformed(head.bytes - 1, "MsgType is reserved", "§5.2.2", input.wire_bytes) };
        if head.length < head.bytes || head.length > input.wire_bytes {
            return malformed(0, "Length is not the message's", "§5.2.1", input.wire_bytes);
        }
        // what is encapsulated stands behind the forwarder's own length
        let len = if kind.number == ENCAPSULATED { input.wire_bytes } else { head.length };
        let bytes = input.bytes.get(..len).unwrap_or(input.bytes);
        (message.row.kind, message.number) = (kind.name, kind.mqtt);
        message.facts.version = Some("MQTT-SN 1.2");
        message.row.header_bytes = count(len);
        let mut cursor = Cursor::new(bytes);
        let is_cut = bytes.len() < len;
        match cursor.take(head.bytes).and_then(|_| self.fields(kind, &mut cursor, from, len, message)) {
            Ok(()) => Step::Message { len },
            Err(_) if is_cut => {
                message.row.opaque_bytes = count(len - bytes.len());
                message.row.header_bytes = count(bytes.len());
                Step::Message { len }
            }
            Err(short) => malformed(short.offset, "field runs past the message", "§5.4", len),
        }
    }
}

const fn malformed(offset: usize, field: &'static str, section: &'static str, len: usize) -> Step {
    Step::Malformed { len, why: Malformed { offset, field, section } }
}

impl Topics {
    fn fields(&mut self, kind: &Kind, cursor: &mut Cursor<'_>, from: Side, len: usize, message: &mut Message) -> Result<(), Short> {
        match kind.fields {
            Fields::Connect => connect(cursor, message)?,
            Fields::ReturnCode => result(cursor, message)?,
            Fields::Register => {
                let topic = cursor.u16()?;
                message.row.message_id = Some(cursor.u16()?);
                match from {
                    Side::Client => self.ask(kind, cursor.rest(), message),
                    Side::Server => drop(self.topics.insert(topic, cursor.rest().into())),
                }
                show_topic(cursor.rest(), message);
            }
            Fields::TopicAck => {
                let topic = cursor.u16()?;
                message.row.message_id = Some(cursor.u16()?);
                if kind.mqtt == REGACK && from == Side::Server {
                    self.agree(REGISTER, topic, message);
                }
                result(cursor, message)?;
            }
            Fields::Publish => self.publish(cursor, len, message)?,
            Fields::MsgId => message.row.message_id = Some(cursor.u16()?),
            Fields::Subscribe => self.subscribe(kind, cursor, message)?,
            Fields::SubAck => {
                cursor.u8()?;
                let topic = cursor.u16()?;
                message.row.message_id = Some(cursor.u16()?);
                self.agree(8, topic, message);
                result(cursor, message)?;
            }
            Fields::Ping if cursor.is_empty() => {}
            Fields::Ping => message.row.client_identifier.set_bytes(cursor.rest()),
            Fields::Other => {}
        }
        Ok(())
    }

    /// §5.4.12
    fn publish(&mut self, cursor: &mut Cursor<'_>, len: usize, message: &mut Message) -> Result<(), Short> {
        let flags = cursor.u8()?;
        let topic = cursor.array::<2>()?;
        let identifier = cursor.u16()?;
        let row = &mut message.row;
        (row.message_id, row.dup, row.retain) = (Some(identifier), Some(flags & 0x80 != 0), Some(flags & 0x10 != 0));
        let qos = flags >> 5 & 3;
        row.qos = (qos < 3).then_some(qos);
        row.variant = ["QoS 0", "QoS 1", "QoS 2", "QoS -1"].get(usize::from(qos)).copied().unwrap_or("");
        row.header_bytes = count(cursor.offset());
        row.payload_bytes = count(len - cursor.offset());
        message.payload_range = cursor.offset()..cursor.offset() + cursor.rest().len();
        message.payload_digest = super::mqtt::digest(cursor.rest(), message.row.payload_bytes);
        match (flags & 3, self.topics.get(&u16::from_be_bytes(topic))) {
            (0, Some(name)) => show_topic(name, message),
            (2, _) => show_topic(&topic, message),
            _ => show_topic(format!("#{}", u16::from_be_bytes(topic)).as_bytes(), message),
        }
        Ok(())
    }

    /// §5.4.15, §5.4.17
    fn subscribe(&mut self, kind: &Kind, cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Short> {
        let flags = cursor.u8()?;
        message.row.dup = (kind.name == "SUBSCRIBE").then_some(flags & 0x80 != 0);
        message.row.message_id = Some(cursor.u16()?);
        let topic = cursor.rest();
        if flags & 3 == 0 {
            self.ask(kind, topic, message);
        }
        if message.wants_text {
            let filter = match (flags & 3, topic) {
                (1, [high, low]) => format!("#{}", u16::from_be_bytes([*high, *low])),
                _ => String::from_utf8_lossy(topic).into_owned(),
            };
            message.row.topic_filters.set(&filter);
        }
        Ok(())
    }

    fn ask(&mut self, kind: &Kind, topic: &[u8], message: &Message) {
        if self.asked.len() < ASKED {
            self.asked.insert((kind.mqtt, message.message_id.unwrap_or(0)), topic.into());
        }
    }

    fn agree(&mut self, asked: u8, topic: u16, message: &Message) {
        if let Some(name) = self.asked.remove(&(asked, message.message_id.unwrap_or(0))).filter(|_| topic != 0) {
            self.topics.insert(topic, name);
        }
    }
}

/// §5.4.4
fn connect(cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Short> {
    let flags = cursor.u8()?;
    cursor.u8()?;
    message.facts.is_opening = true;
    message.row.keep_alive_s = Some(cursor.u16()?);
    message.row.clean_start = Some(flags & 4 != 0);
    message.row.client_identifier.set_bytes(cursor.rest());
    Ok(())
}

/// §5.3.10
fn result(cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Short> {
    let code = cursor.u8()?;
    message.result = Some(if code == 0 { 0 } else { code.saturating_add(0x80) });
    if message.wants_text {
        message.row.reason_codes.set(&code.to_string());
    }
    Ok(())
}

fn show_topic(topic: &[u8], message: &mut Message) {
    message.subject_hash = hash(topic);
    if message.wants_text {
        message.row.topic_name.set_bytes(topic);
    }
}

/// A message that fills its datagram; CONNECT shows the protocol's number besides.
fn probe(bytes: &[u8]) -> Likely {
    let Ok(head) = header(bytes) else { return Likely::No };
    if wireless_node(&head, bytes).is_some() {
        let inside = bytes.get(head.length..).unwrap_or(&[]);
        return if header(inside).is_ok_and(|head| head.number == ENCAPSULATED) { Likely::No } else { probe(inside) };
    }
    if kind(head.number).is_none() || head.length != bytes.len() {
        return Likely::No;
    }
    let body = bytes.get(head.bytes..).unwrap_or(&[]);
    let is_connect = matches!(body, [flags, 1, _, _, client @ ..] if flags & 0xf3 == 0 && (1..=23).contains(&client.len()) && client.iter().all(u8::is_ascii_graphic));
    if head.number == 4 && is_connect {
        Likely::Yes
    } else {
        Likely::Maybe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(sn: &mut Nodes<Topics>, bytes: &[u8], from: Side) -> Message {
        let mut message = Message { wants_text: true, ..Message::default() };
        assert_eq!(Step::Message { len: bytes.len() }, sn.next(Input::whole(bytes), from, &mut message));
        message
    }

    #[test]
    fn a_registered_topic_names_the_publications() {
        let mut sn = Nodes::new(Topics::default);

        // §5.4.10: REGISTER, topic id 0, message id 5, "ab"; §5.4.11: REGACK, topic id 9, message id 5, accepted
        decode(&mut sn, b"\x08\x0a\0\0\0\x05ab", Side::Client);
        decode(&mut sn, b"\x07\x0b\0\x09\0\x05\0", Side::Server);
        // §5.4.12: PUBLISH, DUP and QoS 1, topic id 9, message id 6, "hi"
        let publish = decode(&mut sn, b"\x09\x0c\xa0\0\x09\0\x06hi", Side::Client);

        assert_eq!(Some("ab"), publish.topic_name.get());
        assert_eq!((Some(1), Some(true), Some(false), Some(6)), (publish.qos, publish.dup, publish.retain, publish.message_id));
        assert_eq!((7, 2, "QoS 1"), (publish.header_bytes, publish.payload_bytes, publish.variant));
    }

    #[test]
    fn lengths_of_three_bytes_and_the_connect_are_read() {
        let mut sn = Nodes::new(Topics::default);
        let long = [&b"\x01\x01\x06\x0c\x62\0\x01\0\0"[..], &[b'x'; 253]].concat();

        let publish = decode(&mut sn, &long, Side::Server);
        let connect = decode(&mut sn, b"\x0a\x04\x04\x01\0\x1ehost", Side::Client);

        assert_eq!((9, 253, None, "QoS -1"), (publish.header_bytes, publish.payload_bytes, publish.qos, publish.variant));
        assert_eq!((Some("host"), Some(30), Some(true)), (connect.client_identifier.get(), connect.keep_alive_s, connect.clean_start));
        assert_eq!(Likely::Yes, probe(b"\x0a\x04\x04\x01\0\x1ehost"));
    }

    /// A forwarder's header (§5.5) with Ctrl 1 and a node's ID of two bytes before a message.
    fn encapsulated(node: &[u8; 2], message: &[u8]) -> Vec<u8> {
        [b"\x05\xfe\x01", &node[..], message].concat()
    }

    #[test]
    fn what_a_forwarder_encapsulates_is_the_nodes_message() {
        let mut sn = Nodes::new(Topics::default);
        // two nodes register a topic each with the same message ID, and get the same topic ID
        for (node, name) in [(b"\x0a\x0b", b"ab"), (b"\x0c\x0d", b"cd")] {
            decode(&mut sn, &encapsulated(node, &[b"\x08\x0a\0\0\0\x05", &name[..]].concat()), Side::Client);
            decode(&mut sn, &encapsulated(node, b"\x07\x0b\0\x09\0\x05\0"), Side::Server);
        }
        let bytes = encapsulated(b"\x0a\x0b", b"\x09\x0c\x20\0\x09\0\x06hi");
        let publish = decode(&mut sn, &bytes, Side::Client);

        // five bytes of the forwarder's and seven of the PUBLISH's own stand before the data
        assert_eq!(("PUBLISH", Some("ab"), 12, 2), (publish.kind, publish.topic_name.get(), publish.header_bytes, publish.payload_bytes));
        assert_eq!(Some(&b"hi"[..]), bytes.get(publish.payload_range.clone()));
        assert_eq!(Likely::Yes, probe(&encapsulated(b"\x0a\x0b", b"\x0a\x04\x04\x01\0\x1ehost")));
        assert_eq!(Likely::No, probe(&encapsulated(b"\x0a\x0b", b"\x09\x0c\x20\0\x09\0\x06h")));
    }

    #[test]
    fn any_of_a_forwarders_bytes_may_be_missing_or_wrong() {
        let whole = encapsulated(b"\x0a\x0b", b"\x09\x0c\x20\0\x09\0\x06hi");
        for cut in 1..whole.len() {
            let mut message = Message::default();
            let step =
                Nodes::new(Topics::default).next(Input { bytes: &whole[..cut], wire_bytes: whole.len() }, Side::Client, &mut message);
            match step {
                Step::Message { len } => {
                    assert_eq!((whole.len(), len as u32), (len, message.header_bytes + message.payload_bytes + message.opaque_bytes));
                }
                // what is not decoded is counted by the caller
                Step::NeedMore { at_least } => assert_eq!((true, 0), (at_least > cut, message.header_bytes)),
                Step::Malformed { .. } => unreachable!("cut at {cut}"),
            }
        }
        let step = Nodes::new(Topics::default).next(Input::whole(b"\x05\xfe\x01\x0a\x0b\x02\x03"), Side::Client, &mut Message::default());
        assert!(matches!(step, Step::Malformed { len: 7, why: Malformed { offset: 6, .. } }));
    }

    #[test]
    fn a_sleeping_clients_pingreq_names_it() {
        // §5.4.20
        assert_eq!(Some("host"), decode(&mut Nodes::new(Topics::default), b"\x06\x16host", Side::Client).client_identifier.get());
        assert_eq!(None, decode(&mut Nodes::new(Topics::default), b"\x02\x16", Side::Client).client_identifier.get());
    }

    /// Kinds, outcomes, messages, retransmissions and times to the answer in milliseconds of what was sent, 10 ms apart.
    fn exchanges_of(sent: &[(Side, &[u8])]) -> Vec<(&'static str, &'static str, u32, u32, Option<i64>)> {
        let (mut topics, mut flows, mut exchanges) = (Nodes::new(Topics::default), Nodes::new(Flows::over_datagrams), Exchanges::new(true));
        for (number, (from, bytes)) in (0..).zip(sent) {
            let at = Moment { time_ns: number * 10_000_000, ..Moment::default() };
            flows.place(&decode(&mut topics, bytes, *from), *from, &at, &mut exchanges);
        }
        flows.end(&mut exchanges);
        exchanges.finish();
        let mut ended = exchanges.take_ended();
        ended.sort_by_key(|exchange| exchange.number);
        let rows = ended.iter();
        rows.map(|row| (row.kind, row.outcome, row.messages, row.retransmissions, row.rtt_ns.map(|rtt_ns| rtt_ns / 1_000_000))).collect()
    }
    use Side::{Client, Server};

    #[test]
    fn a_will_is_asked_for_within_connect_and_changed_by_exchanges_of_its_own() {
        // §6.3, figure 3: CONNECT with the Will flag, WILLTOPICREQ, WILLTOPIC, WILLMSGREQ, WILLMSG, CONNACK; §6.4: updates
        let rows = exchanges_of(&[
            (Client, b"\x07\x04\x0c\x01\0\x1eh"),
            (Server, b"\x02\x06"),
            (Client, b"\x04\x07\0w"),
            (Server, b"\x02\x08"),
            (Client, b"\x03\x09m"),
            (Server, b"\x03\x05\0"),
            (Client, b"\x04\x1a\0v"),
            (Server, b"\x03\x1b\0"),
            (Client, b"\x03\x1cn"),
            (Server, b"\x03\x1d\0"),
        ]);

        let update = |kind| (kind, "complete", 2, 0, Some(10));
        assert_eq!(vec![("CONNECT", "complete", 6, 0, Some(50)), update("WILLTOPICUPD"), update("WILLMSGUPD")], rows);
    }

    #[test]
    fn requests_are_sent_again_as_they_were() {
        // §6.13: a message that is not answered within Tretry is sent again; only PUBLISH and SUBSCRIBE have DUP (§5.3.4)
        let rows = exchanges_of(&[
            (Client, b"\x07\x04\x04\x01\0\x1eh"),
            (Client, b"\x07\x04\x04\x01\0\x1eh"),
            (Server, b"\x03\x05\0"),
            (Client, b"\x08\x0a\0\0\0\x05ab"),
            (Client, b"\x08\x0a\0\0\0\x05ab"),
            (Server, b"\x07\x0b\0\x09\0\x05\0"),
            (Client, b"\x08\x0c\x40\0\x09\0\x06x"),
            (Server, b"\x04\x0f\0\x06"),
            (Client, b"\x04\x10\0\x06"),
            (Client, b"\x04\x10\0\x06"),
            (Server, b"\x04\x0e\0\x06"),
            (Client, b"\x02\x16"),
            (Client, b"\x02\x16"),
            (Server, b"\x02\x17"),
            (Client, b"\x08\x0c\x61\0\x01\0\0x"),
        ]);

        let again = |kind| (kind, "complete", 3, 1, Some(20));
        let publish = [("PUBLISH QoS 2", "complete", 5, 1, Some(40)), again("PINGREQ"), ("PUBLISH QoS -1", "complete", 1, 0, None)];
        assert_eq!([&[again("CONNECT"), again("REGISTER")], &publish[..]].concat(), rows);
    }
}
