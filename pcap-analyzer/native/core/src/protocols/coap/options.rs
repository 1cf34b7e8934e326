//! CoAP options (IANA "CoAP Option Numbers"): one table, one walk.

use crate::bytes::Cursor;
use crate::message::Message;
use crate::protocols::Malformed;
use crate::schema::push_hex;
use rustc_hash::FxHasher;
use std::fmt::Write as _;
use std::hash::Hasher;

/// How an option's value is written (RFC 7252 §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Empty,
    Opaque,
    Uint,
    Text,
    /// NUM, M and SZX (RFC 7959 §2.2).
    Block,
}
use Format::{Block, Empty, Opaque, Text, Uint};

/// Number, name, format, smallest and largest length.
#[rustfmt::skip]
const OPTIONS: &[(u16, &str, Format, usize, usize)] = &[
    (1, "If-Match", Opaque, 0, 8),              // RFC 7252 §5.10.8.1
    (3, "Uri-Host", Text, 1, 255),              // RFC 7252 §5.10.1
    (4, "ETag", Opaque, 1, 8),                  // RFC 7252 §5.10.6
    (5, "If-None-Match", Empty, 0, 0),          // RFC 7252 §5.10.8.2
    (6, "Observe", Uint, 0, 3),                 // RFC 7641 §2
    (7, "Uri-Port", Uint, 0, 2),                // RFC 7252 §5.10.1
    (8, "Location-Path", Text, 0, 255),         // RFC 7252 §5.10.7
    (9, "OSCORE", Opaque, 0, 255),              // RFC 8613 §2
    (11, "Uri-Path", Text, 0, 255),             // RFC 7252 §5.10.1
    (12, "Content-Format", Uint, 0, 2),         // RFC 7252 §5.10.3
    (14, "Max-Age", Uint, 0, 4),                // RFC 7252 §5.10.5
    (15, "Uri-Query", Text, 0, 255),            // RFC 7252 §5.10.1
    (16, "Hop-Limit", Uint, 1, 1),              // RFC 8768 §3
    (17, "Accept", Uint, 0, 2),                 // RFC 7252 §5.10.4
    (19, "Q-Block1", Block, 0, 3),              // RFC 9177 §4.1
    (20, "Location-Query", Text, 0, 255),       // RFC 7252 §5.10.7
    (21, "EDHOC", Empty, 0, 0),                 // RFC 9668 §3.1
    (23, "Block2", Block, 0, 3),                // RFC 7959 §2.1
    (27, "Block1", Block, 0, 3),                // RFC 7959 §2.1
    (28, "Size2", Uint, 0, 4),                  // RFC 7959 §4
    (31, "Q-Block2", Block, 0, 3),              // RFC 9177 §4.1
    (35, "Proxy-Uri", Text, 1, 1034),           // RFC 7252 §5.10.2
    (39, "Proxy-Scheme", Text, 1, 255),         // RFC 7252 §5.10.2
    (60, "Size1", Uint, 0, 4),                  // RFC 7252 §5.10.9
    (252, "Echo", Opaque, 1, 40),               // RFC 9175 §2.2.1
    (258, "No-Response", Uint, 0, 1),           // RFC 7967 §2
    (292, "Request-Tag", Opaque, 0, 8),         // RFC 9175 §3.2.1
];

/// The size exponent of blocks that are several of 1,024 bytes (RFC 8323 §6).
pub(super) const BERT: u32 = 7;
/// The byte between options and payload (RFC 7252 §3).
pub const PAYLOAD_MARKER: u8 = 0xff;

/// What options told besides the columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// Whether all were in the table, with lengths that it allows.
    pub is_known: bool,
    /// Whether the payload marker stands behind them.
    pub has_marker: bool,
}

/// Why options could not be read to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The bytes at hand end within the header, the token or an option; what they are up to here is known.
    Short {
        /// Where the token or the option ends whose length is at hand, else where the bytes do.
        known: usize,
    },
    /// They break the format.
    Broken(Malformed),
}

/// Extended option delta or length (RFC 7252 §3.1): 13 adds one byte, 14 two, 15 is reserved.
#[inline]
fn extended(cursor: &mut Cursor<'_>, nibble: u8, field: &'static str) -> Result<u32, Fault> {
    let short = Fault::Short { known: cursor.offset() + cursor.rest().len() };
    match nibble {
        13 => cursor.u8().map(|more| u32::from(more) + 13).map_err(|_| short),
        14 => cursor.u16().map(|more| u32::from(more) + 269).map_err(|_| short),
        15 => Err(Fault::Broken(Malformed { offset: cursor.offset() - 1, field, section: "RFC 7252 §3.1" })),
        short => Ok(short.into()),
    }
}

/// Reads the options up to the payload marker or the end, into the columns; the cursor stands behind the marker afterwards.
#[inline(always)]
pub fn read(cursor: &mut Cursor<'_>, message: &mut Message) -> Result<Told, Fault> {
    let mut told = Told { is_known: true, has_marker: false };
    let mut number = 0_u32;
    let (mut subject, mut tag) = (FxHasher::default(), FxHasher::default());
    let (mut has_subject, mut has_tag) = (false, false);
    while let Some(first) = cursor.peek() {
        let _ = cursor.u8();
        if first == PAYLOAD_MARKER {
            told.has_marker = true;
            break;
        }
        number += extended(cursor, first >> 4, "option delta 15 is reserved")?;
        let length = extended(cursor, first & 0x0f, "option length 15 is reserved")?;
        let value = cursor.take(length as usize).map_err(|short| Fault::Short { known: short.needed })?;
        match number {
            // Proxy-Uri stands for what the other five say (RFC 7252 §5.10.2)
            3 | 7 | 11 | 15 | 35 | 39 => {
                subject.write_u32(number);
                subject.write(value);
                has_subject = true;
            }
            4 | 292 => {
                tag.write(value);
                has_tag = true;
            }
            _ => {}
        }
        told.is_known &= store(number, value, message);
    }
    message.subject_hash = if has_subject { subject.finish() | 1 } else { 0 };
    message.body_tag = if has_tag { tag.finish() | 1 } else { 0 };
    Ok(told)
}

/// A value of up to four bytes, most significant first (RFC 7252 §3.2, uint).
fn uint(value: &[u8]) -> u32 {
    value.iter().take(4).fold(0, |sum, &byte| sum << 8 | u32::from(byte))
}

/// Fills the columns of an option. Returns whether the option is known and its length allowed; one that is not is ignored by receivers
/// (RFC 7252 §5.4.3), so it fills no column of its own.
#[inline]
fn store(number: u32, value: &[u8], message: &mut Message) -> bool {
    let row = OPTIONS.iter().find(|row| u32::from(row.0) == number).filter(|row| (row.3..=row.4).contains(&value.len()));
    if message.wants_text {
        write_text(number, row.map(|row| (row.1, row.2)), value, message);
    }
    if row.is_none() {
        return false;
    }
    let tiny = || u8::try_from(uint(value)).ok();
    let columns = &mut message.row;
    match number {
        6 => columns.observe = Some(uint(value)),
        9 => {
            columns.is_oscore = true;
            // delta 9 at most; a length of 13 and more takes a byte of its own (RFC 7252 §3.1)
            columns.security_bytes = u32::try_from(1 + usize::from(value.len() > 12) + value.len()).unwrap_or(0);
        }
        12 => columns.content_format = u16::try_from(uint(value)).ok(),
        16 => columns.hop_limit = tiny(),
        19 | 27 => {
            (columns.block1_num, columns.block1_more, columns.block1_szx) = block(value);
            columns.is_q_block |= number == 19;
        }
        23 | 31 => {
            (columns.block2_num, columns.block2_more, columns.block2_szx) = block(value);
            columns.is_q_block |= number == 31;
        }
        28 => columns.size2 = Some(uint(value)),
        60 => columns.size1 = Some(uint(value)),
        258 => columns.no_response = tiny(),
        _ => {}
    }
    true
}

/// NUM, M, SZX (RFC 7959 §2.2).
fn block(value: &[u8]) -> (Option<u32>, Option<bool>, Option<u8>) {
    let bits = uint(value);
    (Some(bits >> 4), Some(bits & 8 != 0), Some((bits & 7) as u8))
}

/// Adds a number in decimal: most messages have one, and a formatter takes several times as long.
fn push_number(text: &mut String, number: u32) {
    if number > 9 {
        push_number(text, number / 10);
    }
    text.extend(char::from_digit(number % 10, 10));
}

/// NUM/M/size, as RFC 7959 §3 writes them; of SZX 7 the size is the payload's (RFC 8323 §6).
fn write_block(text: &mut String, value: u32) {
    let _ = match value & 7 {
        BERT => write!(text, "{}/{}/BERT", value >> 4, value >> 3 & 1),
        szx => write!(text, "{}/{}/{}", value >> 4, value >> 3 & 1, 16 << szx),
    };
}

fn write_text(number: u32, known: Option<(&str, Format)>, value: &[u8], message: &mut Message) {
    let text = || String::from_utf8_lossy(value);
    match number {
        11 => message.row.uri_path.more("/").push_str(&text()),
        15 => message.row.uri_query.more("&").push_str(&text()),
        _ => {}
    }
    let options = message.row.options.more("; ");
    let Some((name, format)) = known else {
        let _ = write!(options, "{number}: ");
        return push_hex(options, value);
    };
    options.push_str(name);
    if !matches!(format, Empty) {
        options.push_str(": ");
    }
    match format {
        Empty => {}
        Uint => push_number(options, uint(value)),
        Text => options.push_str(&text()),
        Block => write_block(options, uint(value)),
        Opaque => push_hex(options, value),
    }
}
