//! MQTT 3.1, 3.1.1 (OASIS 2014, ISO/IEC 20922) and 5 (OASIS 2019).
//!
//! Byte columns: properties with their length field are option bytes, the application message of a PUBLISH is payload, all else is header
//! (client identifier, Will and topic among it).

mod packets;
mod pairing;
mod properties;

use super::framing::TOO_FEW;
use super::{Carrier, Decoder, Decoding, Input, Likely, Malformed, Port, Protocol, Step};
use crate::bytes::{count, Cursor};
use crate::few::Few;
use crate::message::{Message, Side};
pub(in crate::protocols) use packets::digest;
pub(in crate::protocols) use pairing::{Flows, AUTH, REGACK, REGISTER, WILLMSGRESP, WILLMSGUPD, WILLTOPICRESP, WILLTOPICUPD};

use packets::{Flags, PacketType, PACKETS};
use properties::{variable_byte_integer, Fault};

/// MQTT over a byte stream.
pub const MQTT: Protocol = Protocol {
    name: "mqtt",
    decode_as: "mqtt",
    standards: &["MQTT 5.0 (OASIS Standard, 2019)", "MQTT 3.1.1 (OASIS Standard, 2014)", "MQTT 3.1 (IBM, 2010)"],
    carrier: Carrier::Stream,
    is_security: false,
    carries: None,
    ports: &[Port::Tls(8883), Port::Tcp(1883)],
    probe,
    connection_id: None,
    decoder: |decoding| Box::new(Mqtt::new(decoding)),
    pairing: || Box::<pairing::Flows>::default(),
    wireshark: &[
        ("mqtt.msgid", "message_id"),
        ("mqtt.qos", "qos"),
        ("mqtt.dupflag", "dup"),
        ("mqtt.retain", "retain"),
        ("mqtt.len", "remaining_length"),
        ("mqtt.topic", "topic_name"),
        ("mqtt.topic_len", "topic_name_bytes"),
        ("mqtt.prop_number.topic_alias", "topic_alias"),
        ("mqtt.clientid", "client_identifier"),
        ("mqtt.kalive", "keep_alive_s"),
        ("mqtt.conflag.cleansess", "clean_start"),
        ("mqtt.conack.flags.sp", "session_present"),
        ("mqtt.ver", "version"),
        ("mqtt.conflag.passwd", "has_password"),
        ("mqtt.willtopic", "will_topic"),
    ],
};

/// A topic that a side set an alias for (MQTT 5 §3.3.2.3.4).
#[derive(Debug)]
struct Known {
    topic_hash: u64,
    topic: Box<[u8]>,
}

/// The decoder of a connection.
#[derive(Debug, Default)]
struct Mqtt {
    /// 3, 4 or 5, as CONNECT says, the user told, or a packet showed.
    version: Option<u8>,
    is_version_inferred: bool,
    /// By side and alias.
    aliases: [Few<u16, Known>; 2],
}

impl Mqtt {
    fn new(decoding: &Decoding) -> Self {
        Self { version: decoding.mqtt_version, is_version_inferred: false, aliases: Default::default() }
    }
}

/// A fixed header (§2.1).
#[derive(Debug, Clone, Copy)]
struct FixedHeader {
    number: u8,
    flags: u8,
    bytes: usize,
    remaining: u32,
}

impl FixedHeader {
    const fn total(&self) -> usize {
        self.bytes + self.remaining as usize
    }
}

/// Reads a fixed header.
#[inline]
fn fixed_header(bytes: &[u8]) -> Result<FixedHeader, Fault> {
    let mut cursor = Cursor::new(bytes);
    let first = cursor.u8()?;
    let remaining = variable_byte_integer(&mut cursor)?;
    Ok(FixedHeader { number: first >> 4, flags: first & 0x0f, bytes: cursor.offset(), remaining })
}

const PUBLISH: u8 = 3;
/// The two flags of a PUBLISH that tell its QoS (§3.3.1.2).
const QOS: u8 = 0b0110;

impl Decoder for Mqtt {
    fn touch(&self, from: Side) -> u64 {
        self.aliases.get(from.index()).map_or(0, Few::touch)
    }

    #[inline]
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let header = match fixed_header(input.bytes) {
            Ok(header) => header,
            Err(Fault::Short(short)) => return Step::NeedMore { at_least: short.needed.max(2) },
            Err(fault) => return malformed(fault, input.wire_bytes),
        };
        let Some(packet) = PACKETS.get(usize::from(header.number)).filter(|packet| packet.flags.allow(header.flags)) else {
            let fault = Fault::Broken(0, "packet type or flags are reserved", "MQTT 5 §2.1.2, §2.1.3");
            return malformed(fault, header.total().min(input.wire_bytes));
        };
        let len = header.total();
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        let bytes = input.bytes.get(..len).unwrap_or(input.bytes);
        (message.row.kind, message.number) = (packet.name, header.number);
        message.row.remaining_length = Some(header.remaining);
        match self.packet(&header, bytes, from, message) {
            Ok(()) => {}
            Err(Fault::Short(_)) if bytes.len() < len && self.fill_cut(&header, bytes, message) => {}
            Err(Fault::Short(short)) => return malformed(Fault::Broken(short.offset, "field runs past the packet", "MQTT 5 §2.1.4"), len),
            Err(fault) => return malformed(fault, len),
        }
        self.tell_version(message);
        Step::Message { len }
    }

    /// The topics behind aliases that the missing bytes may have set, or set anew, are not known (MQTT 5 §3.3.2.3.4).
    fn gap(&mut self, from: Side) {
        self.aliases.get_mut(from.index()).into_iter().for_each(|aliases| *aliases = Few::default());
    }

    fn is_cut_start(&self, input: Input<'_>, from: Side) -> bool {
        let Ok(header) = fixed_header(input.bytes) else { return false };
        // a PUBLISH that is not all of the segment has to show that its topic's length fits
        let has_topic = || header.number == PUBLISH && input.bytes.len() > header.bytes + 2 && header.total() < input.wire_bytes;
        (header.total() == input.wire_bytes || has_topic()) && is_plausible(input.bytes, from) != Some(false)
    }

    fn is_boundary(&self, bytes: &[u8], from: Side) -> Option<bool> {
        let next = fixed_header(bytes).ok().and_then(|header| bytes.get(header.total()..)).unwrap_or(&[]);
        // too little of the next packet to tell speaks not against it, unless it would be longer than most but PUBLISH are
        let is_likely = || fixed_header(next).map_or(true, |header| header.number == PUBLISH || header.total() <= TOO_FEW);
        Some(self.could_read(bytes, from)? && self.could_read(next, from).unwrap_or_else(is_likely))
    }
}

impl Mqtt {
    /// Whether a packet of the connection's version, sent by `from`, can begin here: payload between packets looks like some now and then. None where too
    /// little of it is at hand; only of a PUBLISH its start will do, since a topic is like nothing else.
    fn could_read(&self, bytes: &[u8], from: Side) -> Option<bool> {
        if !is_plausible(bytes, from)? {
            return Some(false);
        }
        let is_all = fixed_header(bytes).is_ok_and(|header| header.number == PUBLISH || header.total() <= bytes.len());
        if !is_all {
            return None;
        }
        let mut trial = Self { version: self.version, ..Self::default() };
        let wire_bytes = fixed_header(bytes).map_or(bytes.len(), |header| header.total().max(bytes.len()));
        Some(matches!(trial.next(Input { bytes, wire_bytes }, from, &mut Message::default()), Step::Message { .. }))
    }

    /// A packet of which the capture holds only the start, and not the whole variable header. Of a PUBLISH its length fields tell what the missing bytes
    /// are, as far as they were captured. Returns whether that can be.
    #[cold]
    fn fill_cut(&self, header: &FixedHeader, bytes: &[u8], message: &mut Message) -> bool {
        let lengths = if header.number == PUBLISH { self.lengths(header, bytes) } else { None };
        let (head, options) = lengths.unwrap_or((bytes.len(), None));
        let Some(rest) = header.total().checked_sub(head + options.unwrap_or(0)) else { return false };
        let row = &mut message.row;
        (row.header_bytes, row.option_bytes) = (count(head), count(options.unwrap_or(0)));
        (row.payload_bytes, row.opaque_bytes) = if options.is_some() { (count(rest), 0) } else { (0, count(rest)) };
        true
    }

    /// How many bytes of a PUBLISH are header, and how many are properties with their length where that is known (§3.3.2).
    fn lengths(&self, header: &FixedHeader, bytes: &[u8]) -> Option<(usize, Option<usize>)> {
        let mut cursor = Cursor::new(bytes);
        cursor.take(header.bytes).ok()?;
        let topic = usize::from(cursor.u16().ok()?);
        let head = cursor.offset() + topic + if header.flags & QOS == 0 { 0 } else { 2 };
        let properties = || {
            let mut cursor = Cursor::new(bytes.get(head..)?);
            let length = variable_byte_integer(&mut cursor).ok()?;
            Some(cursor.offset() + length as usize)
        };
        let options = match self.version {
            Some(5) => properties(),
            Some(_) => Some(0),
            None => None,
        };
        Some((head, options))
    }

    fn tell_version(&self, message: &mut Message) {
        message.row.version = self.version.map(u16::from);
        message.facts.is_version_inferred = self.is_version_inferred;
        message.facts.version = match self.version {
            Some(3) => Some("MQTT 3.1"),
            Some(4) => Some("MQTT 3.1.1"),
            Some(5) => Some("MQTT 5"),
            _ => None,
        };
    }

    /// The version is not known: takes what this packet shows.
    fn infer(&mut self, version: u8) {
        (self.version, self.is_version_inferred) = (Some(version), true);
    }
}

fn malformed(fault: Fault, len: usize) -> Step {
    let (offset, field, section) = match fault {
        Fault::Broken(offset, field, section) => (offset, field, section),
        Fault::Short(short) => (short.offset, "field runs past the packet", "MQTT 5 §2.1.4"),
    };
    Step::Malformed { len: len.max(1), why: Malformed { offset, field, section } }
}

/// A CONNECT names its protocol; anything else only may be MQTT.
fn probe(bytes: &[u8]) -> Likely {
    let name = fixed_header(bytes).ok().and_then(|header| bytes.get(header.bytes..));
    match (bytes.first(), is_name(name.unwrap_or(&[]))) {
        (Some(0x10), Some(true)) => Likely::Yes,
        // small clients send the fixed header by itself
        (Some(0x10), None) => Likely::Maybe,
        // others send it with the packet identifier, or by the byte
        _ if [Side::Client, Side::Server].iter().any(|side| is_plausible(bytes, *side) != Some(false)) => Likely::Maybe,
        _ => Likely::No,
    }
}

/// Whether a CONNECT's protocol name stands here (§3.1.2.1). None where the bytes at hand end within one.
fn is_name(bytes: &[u8]) -> Option<bool> {
    let names = [&b"\0\x04MQTT"[..], b"\0\x06MQIsdp"];
    let is_begun = names.iter().any(|name| name.len() > bytes.len() && name.starts_with(bytes));
    (!is_begun).then(|| names.iter().any(|name| bytes.starts_with(name)))
}

/// Whether a packet that `from` may send can begin here. None where too little of it is at hand.
fn is_plausible(bytes: &[u8], from: Side) -> Option<bool> {
    let (number, flags) = bytes.first().map(|first| (first >> 4, first & 0x0f))?;
    let is_possible = |packet: &&PacketType| packet.flags.allow(flags) && packet.sender.is_none_or(|sender| sender == from);
    let Some(packet) = PACKETS.get(usize::from(number)).filter(is_possible) else { return Some(false) };
    let header = match fixed_header(bytes) {
        Ok(header) => header,
        Err(Fault::Short(_)) => return None,
        Err(_) => return Some(false),
    };
    let is_minimal = header.bytes == 2 || header.remaining >= 1 << (7 * (header.bytes - 2));
    if !is_minimal || !packet.lengths.contains(&header.remaining) {
        return Some(false);
    }
    let mut cursor = Cursor::new(bytes.get(header.bytes..).unwrap_or(&[]));
    match packet.flags {
        Flags::Publish => {
            let length = cursor.u16().ok()?;
            if u32::from(length) + 2 > header.remaining {
                return Some(false);
            }
            match cursor.rest().get(..usize::from(length)) {
                Some(topic) => Some(is_topic(topic)),
                None => if_begins_topic(cursor.rest()),
            }
        }
        Flags::Fixed(_) if packet.has_identifier => {
            let identifier = cursor.u16().ok()?;
            let has_outcome = packet.is_acknowledgement() && header.remaining > 2;
            // two equal letters are a header and an identifier: without the reason behind them nothing tells a packet from text
            Some(identifier != 0 && (!has_outcome || is_reason(cursor.peek()?)))
        }
        Flags::Fixed(_) if header.number == 1 => is_name(cursor.rest()),
        Flags::Fixed(_) => Some(true),
        Flags::Reserved => Some(false),
    }
}

/// Whether a reason code is one of an acknowledgement (MQTT 5 §3.4.2.1): success, "no matching subscribers", or an error.
const fn is_reason(code: u8) -> bool {
    matches!(code, 0x00 | 0x10 | 0x80..)
}

/// None where a topic may begin with these bytes, which end within a character or behind one; else no.
fn if_begins_topic(bytes: &[u8]) -> Option<bool> {
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    if is_topic(bytes.get(..whole).unwrap_or(bytes)) {
        None
    } else {
        Some(false)
    }
}

/// Text without control characters or wildcards (§4.7).
fn is_topic(topic: &[u8]) -> bool {
    std::str::from_utf8(topic).is_ok_and(|topic| !topic.chars().any(|c| c.is_control() || c == '#' || c == '+'))
}

#[cfg(test)]
mod tests;
