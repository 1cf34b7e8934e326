//! MQTT 5 properties (§2.2.2): one table, one walk.

use crate::bytes::{Cursor, Short};
use std::fmt::Write as _;

/// How a property's value is encoded (MQTT 5 §1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Byte,
    TwoByteInteger,
    FourByteInteger,
    VariableByteInteger,
    Utf8String,
    BinaryData,
    Utf8StringPair,
}
use Encoding::{BinaryData, Byte, FourByteInteger, TwoByteInteger, Utf8String, Utf8StringPair, VariableByteInteger};

/// MQTT 5 §2.2.2.2, Table 2-4: identifier, name, type, and the packet types (as bits) it belongs to; bit 0 stands for the Will properties.
#[rustfmt::skip]
const PROPERTIES: &[(u8, &str, Encoding, u16)] = &[
    (0x01, "Payload Format Indicator", Byte, PUBLISH | WILL),
    (0x02, "Message Expiry Interval", FourByteInteger, PUBLISH | WILL),
    (0x03, "Content Type", Utf8String, PUBLISH | WILL),
    (0x08, "Response Topic", Utf8String, PUBLISH | WILL),
    (0x09, "Correlation Data", BinaryData, PUBLISH | WILL),
    (0x0B, "Subscription Identifier", VariableByteInteger, PUBLISH | SUBSCRIBE),
    (0x11, "Session Expiry Interval", FourByteInteger, CONNECT | CONNACK | DISCONNECT),
    (0x12, "Assigned Client Identifier", Utf8String, CONNACK),
    (0x13, "Server Keep Alive", TwoByteInteger, CONNACK),
    (0x15, "Authentication Method", Utf8String, CONNECT | CONNACK | AUTH),
    (0x16, "Authentication Data", BinaryData, CONNECT | CONNACK | AUTH),
    (0x17, "Request Problem Information", Byte, CONNECT),
    (0x18, "Will Delay Interval", FourByteInteger, WILL),
    (0x19, "Request Response Information", Byte, CONNECT),
    (0x1A, "Response Information", Utf8String, CONNACK),
    (0x1C, "Server Reference", Utf8String, CONNACK | DISCONNECT),
    (0x1F, "Reason String", Utf8String, CONNACK | ACKS | SUBACKS | DISCONNECT | AUTH),
    (0x21, "Receive Maximum", TwoByteInteger, CONNECT | CONNACK),
    (0x22, "Topic Alias Maximum", TwoByteInteger, CONNECT | CONNACK),
    (0x23, "Topic Alias", TwoByteInteger, PUBLISH),
    (0x24, "Maximum QoS", Byte, CONNACK),
    (0x25, "Retain Available", Byte, CONNACK),
    (0x26, "User Property", Utf8StringPair, u16::MAX),
    (0x27, "Maximum Packet Size", FourByteInteger, CONNECT | CONNACK),
    (0x28, "Wildcard Subscription Available", Byte, CONNACK),
    (0x29, "Subscription Identifier Available", Byte, CONNACK),
    (0x2A, "Shared Subscription Available", Byte, CONNACK),
];
const WILL: u16 = 1;
const CONNECT: u16 = 1 << 1;
const CONNACK: u16 = 1 << 2;
const PUBLISH: u16 = 1 << 3;
const ACKS: u16 = 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7;
const SUBSCRIBE: u16 = 1 << 8;
const SUBACKS: u16 = 1 << 9 | 1 << 11;
const DISCONNECT: u16 = 1 << 14;
const AUTH: u16 = 1 << 15;

/// Where properties stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the variable header of this packet type.
    Packet(u8),
    /// In a CONNECT's payload (MQTT 5 §3.1.3.2).
    Will,
}

/// Why properties could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// They run past the bytes at hand.
    Short(Short),
    /// They break the standard: where, what, section.
    Broken(usize, &'static str, &'static str),
}

impl From<Short> for Fault {
    fn from(short: Short) -> Self {
        Self::Short(short)
    }
}

/// A Variable Byte Integer (MQTT 5 §1.5.5).
///
/// # Errors
/// Where it is cut or longer than four bytes.
#[inline]
pub fn variable_byte_integer(cursor: &mut Cursor<'_>) -> Result<u32, Fault> {
    let mut value = 0;
    for shift in [0, 7, 14, 21] {
        let byte = cursor.u8()?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Fault::Broken(cursor.offset(), "Variable Byte Integer of more than four bytes", "MQTT 5 §1.5.5"))
}

/// Text or bytes with their length in front (MQTT 5 §1.5.4, §1.5.6).
///
/// # Errors
/// Where fewer bytes are left.
#[inline]
pub fn with_length<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Short> {
    let length = cursor.u16()?;
    cursor.take(length.into())
}

/// What properties told that decoders act upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told<'a> {
    /// Bytes of the properties and their length field.
    pub bytes: u32,
    /// Topic Alias (§3.3.2.3.4).
    pub topic_alias: Option<u16>,
    /// Assigned Client Identifier (§3.2.2.3.7).
    pub assigned_client_identifier: Option<&'a [u8]>,
}

/// Reads the properties with their length field; writes names and values to `text` where it is given.
///
/// # Errors
/// Where they are cut, or break the standard.
#[inline]
pub fn read<'a>(cursor: &mut Cursor<'a>, place: Place, mut text: Option<&mut String>) -> Result<Told<'a>, Fault> {
    let start = cursor.offset();
    let length = variable_byte_integer(cursor)? as usize;
    let end = cursor.offset() + length;
    let mut told = Told::default();
    while cursor.offset() < end {
        let at = cursor.offset();
        let identifier = cursor.u8()?;
        let (name, encoding) = find(identifier, place).ok_or(Fault::Broken(at, "property that does not belong here", "MQTT 5 §2.2.2.2"))?;
        let value = Value::read(cursor, encoding)?;
        match (identifier, value) {
            (0x23, Value::Number(alias)) => told.topic_alias = u16::try_from(alias).ok(),
            (0x12, Value::Text(identifier)) => told.assigned_client_identifier = Some(identifier),
            _ => {}
        }
        if let Some(text) = text.as_deref_mut() {
            value.write(name, text);
        }
    }
    if cursor.offset() != end {
        return Err(Fault::Broken(end, "property runs past the property length", "MQTT 5 §2.2.2.1"));
    }
    told.bytes = u32::try_from(end - start).unwrap_or(u32::MAX);
    Ok(told)
}

#[inline]
fn find(identifier: u8, place: Place) -> Option<(&'static str, Encoding)> {
    let bit = match place {
        Place::Will => WILL,
        Place::Packet(number) => 1 << number,
    };
    PROPERTIES.iter().find(|row| row.0 == identifier && row.3 & bit != 0).map(|row| (row.1, row.2))
}

#[derive(Debug, Clone, Copy)]
enum Value<'a> {
    Number(u32),
    Text(&'a [u8]),
    Binary(&'a [u8]),
    Pair(&'a [u8], &'a [u8]),
}

impl<'a> Value<'a> {
    #[inline]
    fn read(cursor: &mut Cursor<'a>, encoding: Encoding) -> Result<Self, Fault> {
        Ok(match encoding {
            Byte => Self::Number(cursor.u8()?.into()),
            TwoByteInteger => Self::Number(cursor.u16()?.into()),
            FourByteInteger => Self::Number(cursor.u32()?),
            VariableByteInteger => Self::Number(variable_byte_integer(cursor)?),
            Utf8String => Self::Text(with_length(cursor)?),
            BinaryData => Self::Binary(with_length(cursor)?),
            Utf8StringPair => Self::Pair(with_length(cursor)?, with_length(cursor)?),
        })
    }

    fn write(self, name: &str, text: &mut String) {
        if !text.is_empty() {
            text.push_str("; ");
        }
        let _ = match self {
            Self::Number(number) => write!(text, "{name}: {number}"),
            Self::Text(bytes) => write!(text, "{name}: {}", String::from_utf8_lossy(bytes)),
            Self::Binary(bytes) => write!(text, "{name}: ({} bytes)", bytes.len()),
            Self::Pair(key, value) => write!(text, "{name}: {}={}", String::from_utf8_lossy(key), String::from_utf8_lossy(value)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_byte_integers_at_the_edges_of_table_1_1() {
        // MQTT 5 §1.5.5, Table 1-1
        for (bytes, value) in [
            (&[0x00][..], 0),
            (&[0x7f], 127),
            (&[0x80, 0x01], 128),
            (&[0xff, 0x7f], 16_383),
            (&[0x80, 0x80, 0x01], 16_384),
            (&[0xff, 0xff, 0x7f], 2_097_151),
            (&[0x80, 0x80, 0x80, 0x01], 2_097_152),
            (&[0xff, 0xff, 0xff, 0x7f], 268_435_455),
        ] {
            assert_eq!(Ok(value), variable_byte_integer(&mut Cursor::new(bytes)));
        }
        assert!(matches!(variable_byte_integer(&mut Cursor::new(&[0x80, 0x80, 0x80, 0x80, 1])), Err(Fault::Broken(..))));
    }

    #[test]
    fn all_27_properties_are_read_where_they_belong() {
        assert_eq!(27, PROPERTIES.len());
        for &(identifier, name, encoding, places) in PROPERTIES {
            let value: &[u8] = match encoding {
                Byte => &[1],
                TwoByteInteger => &[0, 7],
                FourByteInteger => &[0, 0, 0, 9],
                VariableByteInteger => &[0x80, 1],
                Utf8String | BinaryData => &[0, 2, b'a', b'b'],
                Utf8StringPair => &[0, 1, b'k', 0, 1, b'v'],
            };
            let mut bytes = vec![u8::try_from(value.len() + 1).unwrap(), identifier];
            bytes.extend_from_slice(value);
            for number in 0..16 {
                let place = if number == 0 { Place::Will } else { Place::Packet(number) };
                let mut text = String::new();
                let told = read(&mut Cursor::new(&bytes), place, Some(&mut text));
                assert_eq!(places & 1 << number != 0, told.is_ok(), "{name} in {number}");
                assert_eq!(told.is_ok(), text.starts_with(name));
            }
        }
    }
}
