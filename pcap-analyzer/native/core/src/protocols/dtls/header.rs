//! The two headers of DTLS records.

use super::Malformed;
use crate::bytes::{Cursor, Short};
use crate::message::Message;
use crate::protocols::tls;

/// Most bytes of a fragment, as in TLS (RFC 6347 §4.1).
const MOST: u16 = (1 << 14) + 2048;

/// The header up to DTLS 1.2, and of DTLS 1.3's plaintext (RFC 6347 §4.1; with a connection ID RFC 9146 §4).
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    pub content_type: u8,
    pub version: u16,
    pub epoch: u16,
    pub sequence_number: u64,
    pub length: u16,
    /// Bytes of the header.
    pub size: usize,
}

impl Plain {
    /// Bytes of a header with a connection ID of `connection_id` bytes.
    pub const fn size(connection_id: usize) -> usize {
        13 + connection_id
    }

    #[inline]
    pub fn read(bytes: &[u8], connection_id: usize) -> Option<Self> {
        Self::parse(bytes, connection_id).ok()
    }

    #[inline]
    fn parse(bytes: &[u8], connection_id: usize) -> Result<Self, Short> {
        let mut cursor = Cursor::new(bytes);
        let content_type = cursor.u8()?;
        let version = cursor.u16()?;
        let numbers = cursor.u64()?;
        cursor.take(connection_id)?;
        let length = cursor.u16()?;
        let epoch = u16::try_from(numbers >> 48).unwrap_or(u16::MAX);
        Ok(Self { content_type, version, epoch, sequence_number: numbers & 0xffff_ffff_ffff, length, size: cursor.offset() })
    }

    /// Header and fragment.
    pub const fn len(&self) -> usize {
        self.size + self.length as usize
    }

    /// What is wrong with it, if anything.
    #[inline]
    pub const fn fault(&self) -> Option<Malformed> {
        let (offset, field) = match *self {
            Self { content_type, .. } if content_type < tls::CHANGE_CIPHER_SPEC || content_type > tls::ACK => (0, "type"),
            Self { version, .. } if !matches!(version, 0xfeff | 0xfefd | 0xfefc | 0x0100) => (1, "version"),
            Self { length, size, .. } if length > MOST => (size - 2, "length"),
            _ => return None,
        };
        Some(Malformed { offset, field, section: "RFC 6347 §4.1" })
    }

    /// Fills the columns of the header that `bytes` begin with.
    #[inline]
    pub fn show(&self, bytes: &[u8], message: &mut Message) {
        message.content_type = Some(self.content_type);
        message.version = Some(self.version);
        message.epoch = Some(self.epoch);
        message.sequence_number = Some(self.sequence_number);
        if let Some(id) = bytes.get(11..self.size - 2).filter(|id| !id.is_empty()) {
            message.connection_id.set_hex(id);
        }
    }
}

/// The unified header of DTLS 1.3's protected records (RFC 9147 §4): 001CSLEE.
#[derive(Debug, Clone, Copy)]
pub struct Unified {
    epoch: u8,
    connection_id: usize,
    /// None where the record goes on to the end of its datagram.
    pub length: Option<u16>,
    /// Bytes of the header.
    pub size: usize,
}

const LONG_SEQUENCE_NUMBER: u8 = 0x08;
const LENGTH: u8 = 0x04;

/// The epoch of the handshake's protected messages (RFC 9147 §6.1).
const HANDSHAKE_EPOCH: u8 = 2;

impl Unified {
    /// The first byte's bit C.
    pub const CONNECTION_ID: u8 = 0x10;

    /// Whether a record with this first byte has the unified header.
    #[inline]
    pub const fn is_one(first: u8) -> bool {
        first & 0xe0 == 0x20
    }

    /// Most bytes of a header.
    pub fn most(connection_id: Option<u8>) -> usize {
        5 + usize::from(connection_id.unwrap_or_default())
    }

    /// The header, where it is at hand. A connection ID of unknown length leaves only the first byte that can be told.
    pub fn read(bytes: &[u8], connection_id: Option<u8>) -> Option<Self> {
        let first = *bytes.first()?;
        let has_id = first & Self::CONNECTION_ID != 0;
        if !Self::is_one(first) {
            return None;
        }
        if has_id && connection_id.is_none() {
            return Some(Self { epoch: first & 3, connection_id: 0, length: None, size: 1 });
        }
        Self::parse(bytes, if has_id { connection_id.unwrap_or_default().into() } else { 0 }).ok()
    }

    fn parse(bytes: &[u8], connection_id: usize) -> Result<Self, Short> {
        let mut cursor = Cursor::new(bytes);
        let first = cursor.u8()?;
        cursor.take(connection_id)?;
        cursor.take(if first & LONG_SEQUENCE_NUMBER == 0 { 1 } else { 2 })?;
        let length = if first & LENGTH == 0 { None } else { Some(cursor.u16()?) };
        Ok(Self { epoch: first & 3, connection_id, length, size: cursor.offset() })
    }

    /// Whether the record can stand in a datagram of `bytes`: sixteen bytes of ciphertext at least (RFC 9147 §4.2.3).
    pub fn fits(&self, bytes: usize) -> bool {
        let rest = bytes.saturating_sub(self.size);
        rest >= 16 && self.length.is_none_or(|length| (16..=rest).contains(&usize::from(length)))
    }

    /// Whether the record is of the handshake.
    pub const fn is_handshake(&self) -> bool {
        self.epoch == HANDSHAKE_EPOCH
    }

    /// Fills the columns of the header that `bytes` begin with.
    pub fn show(&self, bytes: &[u8], message: &mut Message) {
        message.epoch = Some(self.epoch.into());
        if let Some(id) = bytes.get(1..=self.connection_id).filter(|id| !id.is_empty()) {
            message.connection_id.set_hex(id);
        }
    }
}
