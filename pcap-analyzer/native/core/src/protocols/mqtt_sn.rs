//! MQTT-SN 1.2 (IBM, 2013) in datagrams.
//!
//! Byte columns: the data of a PUBLISH is payload, all else is header. Columns and pairing are MQTT's: a message has the number of the MQTT control
//! packet whose part it plays. A topic ID is resolved by the REGISTER or SUBSCRIBE that agreed it; else it stands as "#n".

use super::mqtt::{Flows, REGACK, REGISTER};
use super::{Carrier, Decoder, Input, Likely, Malformed, Port, Protocol, Step};
use crate::bytes::{hash, Cursor, Short};
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
    decoder: |_| Box::<MqttSn>::default(),
    pairing: || Box::<Flows>::default(),
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
    Kind { number: 0x06, name: "WILLTOPICREQ", mqtt: 0, fields: Fields::Other },
    Kind { number: 0x07, name: "WILLTOPIC", mqtt: 0, fields: Fields::Other },
    Kind { number: 0x08, name: "WILLMSGREQ", mqtt: 0, fields: Fields::Other },
    Kind { number: 0x09, name: "WILLMSG", mqtt: 0, fields: Fields::Other },
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
    Kind { number: 0x16, name: "PINGREQ", mqtt: 12, fields: Fields::Other },
    Kind { number: 0x17, name: "PINGRESP", mqtt: 13, fields: Fields::Other },
    Kind { number: 0x18, name: "DISCONNECT", mqtt: 14, fields: Fields::Other },
    Kind { number: 0x1a, name: "WILLTOPICUPD", mqtt: 0, fields: Fields::Other },
    Kind { number: 0x1b, name: "WILLTOPICRESP", mqtt: 0, fields: Fields::ReturnCode },
    Kind { number: 0x1c, name: "WILLMSGUPD", mqtt: 0, fields: Fields::Other },
    Kind { number: 0x1d, name: "WILLMSGRESP", mqtt: 0, fields: Fields::ReturnCode },
    Kind { number: 0xfe, name: "Encapsulated", mqtt: 0, fields: Fields::Other },
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

/// A topic that is agreed on but not yet acknowledged, by message ID; and topics by their ID.
#[derive(Debug, Default)]
struct MqttSn {
    asked: FxHashMap<(u8, u16), Box<[u8]>>,
    topics: FxHashMap<u16, Box<[u8]>>,
}

/// Topics asked for that are remembered at most; a client that never gets an answer cannot fill the memory.
const ASKED: usize = 4096;

impl Decoder for MqttSn {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let head = match header(input.bytes) {
            Ok(head) => head,
            Err(short) => return Step::NeedMore { at_least: short.needed.max(input.bytes.len() + 1) },
        };
        let Some(kind) = kind(head.number) else { return malformed(head.bytes - 1, "MsgType is reserved", "§5.2.2", input.wire_bytes) };
        if head.length < head.bytes || head.length > input.wire_bytes {
            return malformed(0, "Length is not the message's", "§5.2.1", input.wire_bytes);
        }
        // what is encapsulated stands behind the forwarder's own length (§5.5)
        let len = if kind.number == 0xfe { input.wire_bytes } else { head.length };
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

fn count(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

const fn malformed(offset: usize, field: &'static str, section: &'static str, len: usize) -> Step {
    Step::Malformed { len, why: Malformed { offset, field, section } }
}

impl MqttSn {
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

    fn decode(sn: &mut MqttSn, bytes: &[u8], from: Side) -> Message {
        let mut message = Message { wants_text: true, ..Message::default() };
        assert_eq!(Step::Message { len: bytes.len() }, sn.next(Input::whole(bytes), from, &mut message));
        message
    }

    #[test]
    fn a_registered_topic_names_the_publications() {
        let mut sn = MqttSn::default();

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
        let mut sn = MqttSn::default();
        let long = [&b"\x01\x01\x06\x0c\x62\0\x01\0\0"[..], &[b'x'; 253]].concat();

        let publish = decode(&mut sn, &long, Side::Server);
        let connect = decode(&mut sn, b"\x0a\x04\x04\x01\0\x1ehost", Side::Client);

        assert_eq!((9, 253, None, "QoS -1"), (publish.header_bytes, publish.payload_bytes, publish.qos, publish.variant));
        assert_eq!((Some("host"), Some(30), Some(true)), (connect.client_identifier.get(), connect.keep_alive_s, connect.clean_start));
        assert_eq!(Likely::Yes, probe(b"\x0a\x04\x04\x01\0\x1ehost"));
    }
}
