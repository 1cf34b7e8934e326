//! The 15 control packets: the table (§2.1.2), and what stands in each (chapter 3), field by field in the order of the wire.

use super::properties::{self, variable_byte_integer, with_length, Fault, Place, Told};
use super::{FixedHeader, Known, Mqtt};
use crate::bytes::{hash, Cursor, Short};
use crate::message::{Message, Side};
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// The flags that a fixed header may carry (§2.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flags {
    /// No packet type of the standard.
    Reserved,
    /// One of these: two where MQTT 3.1 lets DUP be set.
    Fixed([u8; 2]),
    /// DUP, QoS (not 3) and RETAIN.
    Publish,
}

impl Flags {
    #[inline]
    pub const fn allow(self, flags: u8) -> bool {
        match self {
            Self::Reserved => false,
            Self::Fixed([one, other]) => flags == one || flags == other,
            Self::Publish => flags & 0b0110 != 0b0110,
        }
    }
}

/// What the table says of a packet type.
#[derive(Debug)]
pub struct PacketType {
    pub name: &'static str,
    pub flags: Flags,
    /// Who may send it; none where both may.
    pub sender: Option<Side>,
    /// Remaining Lengths that are likely, for finding a boundary again.
    pub lengths: RangeInclusive<u32>,
    /// Whether the variable header begins with a packet identifier.
    pub has_identifier: bool,
}

impl PacketType {
    /// Whether it is PUBACK, PUBREC, PUBREL or PUBCOMP: an identifier, and in version 5 perhaps an outcome.
    pub const fn is_acknowledgement(&self) -> bool {
        self.has_identifier && self.sender.is_none()
    }
}

const fn row(name: &'static str, flags: Flags, sender: Option<Side>, lengths: RangeInclusive<u32>, has_identifier: bool) -> PacketType {
    PacketType { name, flags, sender, lengths, has_identifier }
}

const CLIENT: Option<Side> = Some(Side::Client);
const SERVER: Option<Side> = Some(Side::Server);

const DUP: u8 = 0b1000;
const NONE: Flags = Flags::Fixed([0; 2]);
/// QoS 1, which only MQTT 3.1 takes for one: what is sent again then has DUP (MQTT 3.1 §2.1, §3.6, §3.8, §3.10).
const QOS_1: Flags = Flags::Fixed([0b0010, DUP | 0b0010]);

/// MQTT 5 §2.1.2, Table 2-1 and §2.1.3, Table 2-2.
#[rustfmt::skip]
pub const PACKETS: [PacketType; 16] = [
    row("Reserved", Flags::Reserved, None, 0..=0, false),
    row("CONNECT", NONE, CLIENT, 10..=1 << 20, false),
    row("CONNACK", NONE, SERVER, 2..=1 << 16, false),
    row("PUBLISH", Flags::Publish, None, 2..=1 << 28, false),
    row("PUBACK", NONE, None, 2..=1 << 12, true),
    row("PUBREC", NONE, None, 2..=1 << 12, true),
    row("PUBREL", QOS_1, None, 2..=1 << 12, true),
    row("PUBCOMP", NONE, None, 2..=1 << 12, true),
    row("SUBSCRIBE", QOS_1, CLIENT, 6..=1 << 20, true),
    row("SUBACK", NONE, SERVER, 3..=1 << 16, true),
    row("UNSUBSCRIBE", QOS_1, CLIENT, 5..=1 << 20, true),
    row("UNSUBACK", NONE, SERVER, 2..=1 << 16, true),
    row("PINGREQ", NONE, CLIENT, 0..=0, false),
    row("PINGRESP", NONE, SERVER, 0..=0, false),
    row("DISCONNECT", NONE, None, 0..=1 << 12, false),
    row("AUTH", NONE, None, 0..=1 << 16, false),
];

/// Bytes at a payload's start that its digest is made of, with its length.
const DIGESTED: usize = 4096;

/// What tells publications of one topic apart: their length and the start of what was captured of them.
pub fn digest(payload: &[u8], payload_bytes: u32) -> u64 {
    hash(payload.get(..DIGESTED).unwrap_or(payload)) ^ u64::from(payload_bytes)
}

/// All that is left of a packet; an error where the capture has cut it.
fn whole<'a>(header: &FixedHeader, mut cursor: Cursor<'a>) -> Result<&'a [u8], Short> {
    cursor.take(header.total().saturating_sub(cursor.offset()))
}

/// Whether a PUBLISH was cut where properties may stand: they do not where they would be longer than the packet.
fn is_undecided(header: &FixedHeader, mut cursor: Cursor<'_>) -> bool {
    let is_cut = whole(header, cursor).is_err();
    is_cut && variable_byte_integer(&mut cursor).map_or(true, |length| cursor.offset() + length as usize <= header.total())
}

impl Mqtt {
    /// Reads the packet behind its fixed header; `bytes` is the packet from its start on, as far as it was captured.
    #[inline]
    pub fn packet(&mut self, header: &FixedHeader, bytes: &[u8], from: Side, message: &mut Message) -> Result<(), Fault> {
        let mut cursor = Cursor::new(bytes);
        cursor.take(header.bytes)?;
        if header.number == 3 {
            return self.publish(header, cursor, from, message);
        }
        message.row.dup = self.dup(header)?;
        match header.number {
            1 => self.connect(&mut cursor, message)?,
            2 => self.connack(header, &mut cursor, message)?,
            4..=7 => self.acknowledgement(header, &mut cursor, message)?,
            8 | 10 => self.subscribe(header, &mut cursor, message)?,
            9 | 11 => self.suback(header, &mut cursor, message)?,
            14 | 15 => self.disconnect(header, &mut cursor, message)?,
            _ => {}
        }
        let len = u32::try_from(header.total()).unwrap_or(u32::MAX);
        if cursor.offset() != header.total() {
            return Err(Fault::Broken(cursor.offset(), "bytes behind the packet's last field", "MQTT 5 §2.1.4"));
        }
        message.row.header_bytes = len - message.row.option_bytes;
        Ok(())
    }

    /// DUP of another packet than PUBLISH: in MQTT 3.1 only.
    #[inline]
    fn dup(&mut self, header: &FixedHeader) -> Result<Option<bool>, Fault> {
        let is_set = header.flags & DUP != 0;
        if is_set && self.version.is_none() {
            self.infer(3);
        }
        match self.version {
            Some(3) => Ok(matches!(header.number, 6 | 8 | 10).then_some(is_set)),
            _ if is_set => Err(Fault::Broken(0, "packet type or flags are reserved", "MQTT 5 §2.1.2, §2.1.3")),
            _ => Ok(None),
        }
    }

    fn is_5(&self) -> bool {
        self.version == Some(5)
    }

    /// §3.3
    #[inline]
    fn publish(&mut self, header: &FixedHeader, mut cursor: Cursor<'_>, from: Side, message: &mut Message) -> Result<(), Fault> {
        let qos = header.flags >> 1 & 3;
        let row = &mut message.row;
        (row.qos, row.dup, row.retain) = (Some(qos), Some(header.flags & 8 != 0), Some(header.flags & 1 != 0));
        row.variant = ["QoS 0", "QoS 1", "QoS 2"].get(usize::from(qos)).copied().unwrap_or("");
        let topic = with_length(&mut cursor)?;
        row.topic_name_bytes = u16::try_from(topic.len()).ok();
        if qos > 0 {
            row.message_id = Some(cursor.u16()?);
        }
        if self.version.is_none() {
            self.infer_by_properties(header, cursor)?;
        }
        let mut told = Told::default();
        if self.is_5() {
            match self.properties(&mut cursor.clone(), 3, message) {
                Ok(read) => {
                    told = read;
                    cursor.take(told.bytes as usize)?;
                }
                Err(Fault::Broken(..)) if self.is_version_inferred => self.version = Some(4),
                Err(fault) => return Err(fault),
            }
        }
        self.resolve(topic, told.topic_alias, from, message);
        let len = header.total();
        let payload = cursor.rest();
        let row = &mut message.row;
        row.option_bytes = told.bytes;
        row.payload_bytes = u32::try_from(len - cursor.offset()).unwrap_or(u32::MAX);
        row.header_bytes = u32::try_from(cursor.offset()).unwrap_or(u32::MAX) - told.bytes;
        message.payload_range = cursor.offset()..cursor.offset() + payload.len();
        message.payload_digest = digest(payload, message.row.payload_bytes);
        Ok(())
    }

    /// The version that the first PUBLISH shows, of which what is behind the identifier is left.
    #[cold]
    fn infer_by_properties(&mut self, header: &FixedHeader, cursor: Cursor<'_>) -> Result<(), Fault> {
        match properties::read(&mut cursor.clone(), Place::Packet(3), None) {
            // what was not captured may have told
            Err(Fault::Short(short)) if is_undecided(header, cursor) => return Err(Fault::Short(short)),
            read => self.infer(if read.is_ok() { 5 } else { 4 }),
        }
        Ok(())
    }

    /// The topic name, where an alias stands for it the one it was set to (§3.3.2.3.4).
    #[inline]
    fn resolve(&mut self, topic: &[u8], alias: Option<u16>, from: Side, message: &mut Message) {
        message.row.topic_alias = alias;
        message.subject_hash = hash(topic);
        let wants_text = message.wants_text;
        let Some(aliases) = self.aliases.get_mut(from.index()) else { return };
        match alias {
            Some(alias) if topic.is_empty() => match aliases.get(&alias) {
                Some(known) => {
                    message.subject_hash = known.topic_hash;
                    if wants_text {
                        message.row.topic_name.set_bytes(&known.topic);
                    }
                }
                None => message.facts.is_alias_unknown = true,
            },
            Some(alias) if aliases.get(&alias).is_none_or(|known| known.topic_hash != message.subject_hash) => {
                aliases.insert(alias, Known { topic_hash: message.subject_hash, topic: topic.into() });
            }
            _ => {}
        }
        if wants_text && !topic.is_empty() {
            message.row.topic_name.set_bytes(topic);
        }
    }

    /// Properties of a packet of MQTT 5; their text and size go to the row.
    #[inline]
    fn properties<'a>(&self, cursor: &mut Cursor<'a>, number: u8, message: &mut Message) -> Result<Told<'a>, Fault> {
        let text = if message.wants_text { Some(message.row.properties.start()) } else { None };
        let told = properties::read(cursor, Place::Packet(number), text);
        if let Ok(told) = told {
            message.row.option_bytes += told.bytes;
        } else {
            message.row.properties = crate::schema::Text::default();
        }
        told
    }

    /// §3.1
    fn connect(&mut self, cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Fault> {
        let at = cursor.offset();
        let name = with_length(cursor)?;
        if name != b"MQTT" && name != b"MQIsdp" {
            return Err(Fault::Broken(at, "protocol name is not MQTT", "MQTT 5 §3.1.2.1"));
        }
        // the topmost bit marks a bridge between brokers, a private agreement of Mosquitto's: the other broker then leaves RETAIN as it is
        let level = cursor.u8()?;
        message.facts.is_retain_as_published = level & 0x80 != 0;
        (self.version, self.is_version_inferred) = (Some((level & 0x7f).clamp(3, 5)), false);
        let flags = cursor.u8()?;
        let row = &mut message.row;
        row.clean_start = Some(flags & 0x02 != 0);
        row.has_password = Some(flags & 0x40 != 0);
        row.keep_alive_s = Some(cursor.u16()?);
        message.facts.is_opening = true;
        if self.is_5() {
            self.properties(cursor, 1, message)?;
        }
        let client_identifier = with_length(cursor)?;
        message.row.client_identifier.set_bytes(client_identifier);
        if flags & 0x04 != 0 {
            self.will(cursor, message)?;
        }
        if flags & 0x80 != 0 {
            let user_name = with_length(cursor)?;
            message.facts.authentication = Some("user name");
            if message.wants_secrets {
                message.row.user_name.set_bytes(user_name);
            } else {
                let _ = write!(message.row.user_name.start(), "({} bytes)", user_name.len());
            }
        }
        if flags & 0x40 != 0 {
            with_length(cursor)?;
        }
        Ok(())
    }

    /// §3.1.3.2 to §3.1.3.4
    fn will(&self, cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Fault> {
        if self.is_5() {
            let told = properties::read(cursor, Place::Will, None)?;
            message.row.option_bytes += told.bytes;
        }
        let topic = with_length(cursor)?;
        if message.wants_text {
            message.row.will_topic.set_bytes(topic);
        }
        with_length(cursor)?;
        Ok(())
    }

    /// §3.2. A server that does not know version 5 may answer in the form of 3.1.1, two bytes (trap 79).
    fn connack(&mut self, header: &FixedHeader, cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Fault> {
        if self.version.is_none() {
            self.infer(if header.remaining == 2 { 4 } else { 5 });
        }
        message.row.session_present = Some(cursor.u8()? & 1 != 0);
        reason_code(cursor, message)?;
        if self.is_5() && header.remaining > 2 {
            let told = self.properties(cursor, 2, message)?;
            if let Some(identifier) = told.assigned_client_identifier {
                message.row.client_identifier.set_bytes(identifier);
            }
        }
        Ok(())
    }

    /// §3.4 to §3.7: PUBACK, PUBREC, PUBREL, PUBCOMP. Reason code and properties may be left out.
    #[inline]
    fn acknowledgement(&mut self, header: &FixedHeader, cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Fault> {
        message.row.message_id = Some(cursor.u16()?);
        self.outcome(header, 2, cursor, message)
    }

    /// §3.8 SUBSCRIBE and §3.10 UNSUBSCRIBE
    fn subscribe(&mut self, header: &FixedHeader, cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Fault> {
        let has_options = header.number == 8;
        message.row.message_id = Some(cursor.u16()?);
        if self.version.is_none() {
            whole(header, *cursor)?;
            let mut ahead = *cursor;
            let is_5 = properties::read(&mut ahead, Place::Packet(header.number), None).is_ok()
                && filters(&mut ahead, header.total(), has_options, None).is_ok();
            self.infer(if is_5 { 5 } else { 4 });
        }
        if self.is_5() {
            self.properties(cursor, header.number, message)?;
        }
        let text = if message.wants_text { Some(message.row.topic_filters.start()) } else { None };
        let options = filters(cursor, header.total(), has_options, text)?;
        message.facts.is_retain_as_published = self.is_5() && options & RETAIN_AS_PUBLISHED != 0;
        Ok(())
    }

    /// §3.9 SUBACK and §3.11 UNSUBACK; before version 5 UNSUBACK has no reason codes.
    fn suback(&mut self, header: &FixedHeader, cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Fault> {
        message.row.message_id = Some(cursor.u16()?);
        if self.version.is_none() {
            if cursor.is_empty() {
                whole(header, *cursor)?;
            }
            let has_properties = cursor.peek() == Some(0) && header.remaining >= 4;
            self.infer(if has_properties { 5 } else { 4 });
        }
        if self.is_5() && header.remaining > 2 {
            self.properties(cursor, header.number, message)?;
        }
        while cursor.offset() < header.total() {
            reason_code(cursor, message)?;
        }
        Ok(())
    }

    /// §3.14 DISCONNECT and §3.15 AUTH: reason code and properties may be left out.
    fn disconnect(&mut self, header: &FixedHeader, cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Fault> {
        self.outcome(header, 0, cursor, message)
    }

    /// Reason code and properties behind the first `before` bytes, as far as they are there: only version 5 has them.
    #[inline]
    fn outcome(&mut self, header: &FixedHeader, before: u32, cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Fault> {
        if header.remaining <= before {
            return Ok(());
        }
        if self.version.is_none() {
            self.infer(5);
        }
        if self.is_5() {
            reason_code(cursor, message)?;
        }
        if self.is_5() && header.remaining > before + 1 {
            self.properties(cursor, header.number, message)?;
        }
        Ok(())
    }
}

/// In the options of a subscription (§3.8.3.1).
const RETAIN_AS_PUBLISHED: u8 = 0x08;

/// Topic filters up to `end`, each with its options in a SUBSCRIBE. Returns the options that any of them has.
fn filters(cursor: &mut Cursor<'_>, end: usize, has_options: bool, mut text: Option<&mut String>) -> Result<u8, Fault> {
    let mut of_any = 0;
    while cursor.offset() < end {
        let filter = with_length(cursor)?;
        let options = if has_options { Some(cursor.u8()?) } else { None };
        of_any |= options.unwrap_or(0);
        let Some(text) = text.as_deref_mut() else { continue };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&String::from_utf8_lossy(filter));
        if let Some(options) = options {
            let _ = write!(text, " QoS {}", options & 3);
        }
    }
    Ok(of_any)
}

/// A reason code (§2.4), a return code before version 5.
#[inline]
fn reason_code(cursor: &mut Cursor<'_>, message: &mut Message) -> Result<(), Fault> {
    let code = cursor.u8()?;
    message.result = Some(code);
    if message.wants_text {
        let _ = write!(message.row.reason_codes.more(","), "{code}");
    }
    Ok(())
}
