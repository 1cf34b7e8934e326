//! The handshake messages that TLS and DTLS share, and what they agree for the records behind them.
//!
//! Standards: RFC 5246 §7.4 (TLS 1.2), RFC 8446 §4 (TLS 1.3), RFC 6347 §4.2 (DTLS 1.2), RFC 9147 §5 (DTLS 1.3), RFC 6066 §3 (server_name), RFC 7301
//! (ALPN), RFC 7250 (raw public keys), RFC 7366 (encrypt_then_mac), RFC 9146 §3 (connection_id).
//!
//! How `authentication` is decided:
//! - "resumption": TLS ≤ 1.2, the server echoes the session ID that the client offered (RFC 5246 §7.4.1.2; a client with a ticket offers one of its own
//!   making to learn this, RFC 5077 §3.4), or it sends ChangeCipherSpec without ServerHelloDone before it; TLS 1.3, it selects a PSK whose
//!   obfuscated_ticket_age is not 0 (RFC 8446 §4.2.11: 0 stands for keys that were shared outside).
//! - "PSK": a cipher suite with PSK in its key exchange, or TLS 1.3 selects a PSK whose obfuscated_ticket_age is 0.
//! - "password": EC J-PAKE, SRP or ECCPWD in the cipher suite's key exchange.
//! - "certificate", "raw public key": the server's Certificate is not empty; in TLS 1.3, where it is encrypted, no PSK was selected (RFC 8446 §2).
//! - "client certificate": the client's Certificate is not empty (TLS ≤ 1.2; encrypted and so not visible in TLS 1.3).

use super::names;
use crate::bytes::{Cursor, Short};
use crate::message::{Message, Side};
use crate::security::{Agreement, CipherSuite, Version};
use std::fmt::Write as _;

/// The random that makes a ServerHello a HelloRetryRequest (RFC 8446 §4.1.3): SHA-256 of "HelloRetryRequest".
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
    0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Drafts of TLS 1.3 before this one had no session ID and no compression method in their ServerHello.
const DRAFT_WITH_SESSION_ID: u16 = 0x7f16;

const SERVER_NAME: u16 = 0;
const TRUNCATED_HMAC: u16 = 4;
const ALPN: u16 = 16;
const SERVER_CERTIFICATE_TYPE: u16 = 20;
const ENCRYPT_THEN_MAC: u16 = 22;
const PRE_SHARED_KEY: u16 = 41;
const SUPPORTED_VERSIONS: u16 = 43;
/// The number of drafts of RFC 9146, and the one of the standard.
const CONNECTION_ID_DRAFT: u16 = 53;
const CONNECTION_ID: u16 = 54;

const RAW_PUBLIC_KEY: u8 = 2;

/// What the two sides have told each other so far.
#[derive(Debug, Default)]
pub struct Association {
    is_datagram: bool,
    client_random: Option<[u8; 32]>,
    session_id: SessionId,
    /// Bit n: the client's PSK identity n was shared outside TLS.
    external_keys: u32,
    offered_connection_id: Option<u8>,
    is_raw_public_key: bool,
    is_server_hello_done: bool,
    /// The server asked for another ClientHello, as only (D)TLS 1.3 does.
    is_retried: bool,
    /// Lengths of the connection IDs in the records that each side sends (RFC 9146 §3); none where not agreed.
    pub connection_id_bytes: [Option<u8>; 2],
    /// What the ServerHello agreed; none before it, and where the capture began behind it.
    pub agreement: Option<Agreement>,
    /// Which sides have sent ChangeCipherSpec (TLS ≤ 1.2): their records are protected.
    pub is_changed: [bool; 2],
}

/// The client's session ID, at most 32 bytes (RFC 5246 §7.4.1.2).
#[derive(Debug, Default)]
struct SessionId {
    bytes: [u8; 32],
    length: usize,
}

impl SessionId {
    fn set(&mut self, id: &[u8]) {
        self.length = 0;
        if let Some(place) = self.bytes.get_mut(..id.len()) {
            place.copy_from_slice(id);
            self.length = id.len();
        }
    }

    fn is_echoed_by(&self, id: &[u8]) -> bool {
        !id.is_empty() && self.bytes.get(..self.length) == Some(id)
    }
}

impl Association {
    /// Nothing agreed yet. Datagrams carry a cookie in their ClientHello (RFC 6347 §4.2.1).
    pub fn new(is_datagram: bool) -> Self {
        Self { is_datagram, ..Self::default() }
    }

    /// Whether a hello was seen: handshake messages behind it, of any length, are in the clear until the keys change.
    pub fn has_begun(&self) -> bool {
        self.client_random.is_some() || self.agreement.is_some()
    }

    /// Whether records are of (D)TLS 1.3.
    pub fn is_13(&self) -> bool {
        self.agreement.is_some_and(|agreement| agreement.version.is_13())
    }

    /// Whether a ClientHello with this body begins another handshake than the one that is known.
    pub fn is_other_client(&self, body: &[u8]) -> bool {
        let random = body.get(2..34);
        random.is_some() && self.client_random.is_some() && random != self.client_random.as_ref().map(<[u8; 32]>::as_slice)
    }

    /// Reads a handshake message, as far as its body is at hand, and returns its name.
    pub fn read(&mut self, kind: u8, body: &[u8], from: Side, message: &mut Message) -> &'static str {
        let name = names::handshake_type(kind).unwrap_or_default();
        match (kind, from) {
            (names::CLIENT_HELLO, _) => {
                let _ = self.client_hello(body, message);
            }
            (names::SERVER_HELLO, _) if body.get(2..34) == Some(&RETRY_RANDOM) => {
                let _ = ServerHello::read(body).map(|hello| self.show(&hello, message));
                self.is_retried = true;
                return names::HELLO_RETRY_REQUEST;
            }
            (names::SERVER_HELLO, _) => {
                let _ = ServerHello::read(body).map(|hello| self.agree(&hello, message));
            }
            (names::CERTIFICATE, _) if body.get(..3).is_some_and(|length| length != [0, 0, 0]) => self.certificate(from, message),
            (names::SERVER_HELLO_DONE, _) => self.is_server_hello_done = true,
            _ => {}
        }
        name
    }

    /// RFC 5246 §7.4.1.2, RFC 8446 §4.1.2, RFC 6347 §4.2.1.
    fn client_hello(&mut self, body: &[u8], message: &mut Message) -> Result<(), Short> {
        let mut cursor = Cursor::new(body);
        cursor.u16()?;
        self.client_random = Some(cursor.array()?);
        self.session_id.set(vector8(&mut cursor)?);
        self.external_keys = 0;
        self.offered_connection_id = None;
        if self.is_datagram {
            vector8(&mut cursor)?;
        }
        vector16(&mut cursor)?;
        vector8(&mut cursor)?;
        for (kind, data) in Extensions::new(&mut cursor) {
            match kind {
                SERVER_NAME => show_server_name(data, message)?,
                ALPN => show_alpn(data, message)?,
                PRE_SHARED_KEY => self.external_keys = external_keys(data)?,
                CONNECTION_ID | CONNECTION_ID_DRAFT => self.offered_connection_id = data.first().copied(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes over what the ServerHello says, from which on records of TLS 1.3 are protected.
    fn agree(&mut self, hello: &ServerHello<'_>, message: &mut Message) {
        self.is_changed = [false; 2];
        self.is_server_hello_done = false;
        self.is_retried = false;
        self.is_raw_public_key = hello.is_raw_public_key;
        self.connection_id_bytes = match (hello.connection_id, self.offered_connection_id) {
            (Some(servers), Some(clients)) => [Some(servers), Some(clients)],
            _ => [None; 2],
        };
        self.agreement = self.show(hello, message);
        let Some(agreement) = self.agreement else { return };
        message.facts.version = Some(agreement.version.name());
        message.facts.authentication = self.authentication(&agreement, hello);
        if let Some(alpn) = hello.alpn {
            let _ = show_alpn(alpn, message);
        }
    }

    fn show(&self, hello: &ServerHello<'_>, message: &mut Message) -> Option<Agreement> {
        let suite = CipherSuite::find(hello.cipher_suite);
        match suite {
            Some(suite) => message.cipher_suite.set(suite.name),
            None => {
                let _ = write!(message.cipher_suite.start(), "0x{:04x}", hello.cipher_suite);
            }
        }
        let version = Version::from_number(hello.version)?;
        let (is_encrypt_then_mac, is_hmac_truncated) = (hello.is_encrypt_then_mac, hello.is_hmac_truncated);
        Some(Agreement { version, suite, is_encrypt_then_mac, is_hmac_truncated })
    }

    fn authentication(&self, agreement: &Agreement, hello: &ServerHello<'_>) -> Option<&'static str> {
        if agreement.version.is_13() {
            return Some(match hello.selected_key {
                None => "certificate",
                Some(key) if self.external_keys.checked_shr(key.into()).is_some_and(|keys| keys & 1 == 1) => "PSK",
                Some(_) => "resumption",
            });
        }
        if self.session_id.is_echoed_by(hello.session_id) {
            return Some("resumption");
        }
        const WORDS: &[(&str, &str)] = &[("PSK", "PSK"), ("ECJPAKE", "password"), ("SRP", "password"), ("ECCPWD", "password")];
        let key_exchange = agreement.suite?.key_exchange;
        WORDS.iter().find(|(word, _)| key_exchange.contains(word)).map(|(_, name)| *name)
    }

    fn certificate(&self, from: Side, message: &mut Message) {
        message.facts.authentication = Some(match from {
            Side::Client => "client certificate",
            Side::Server if self.is_raw_public_key => "raw public key",
            Side::Server => "certificate",
        });
    }

    /// A side sent ChangeCipherSpec: up to TLS 1.2 its records are protected from here on; in TLS 1.3 it means nothing (RFC 8446 §5).
    pub fn change_cipher_spec(&mut self, from: Side, message: &mut Message) {
        if self.is_retried || self.is_13() {
            return;
        }
        let is_first = !self.is_changed.contains(&true);
        if from == Side::Server && is_first && self.agreement.is_some() && !self.is_server_hello_done {
            message.facts.authentication = Some("resumption");
        }
        self.set_changed(from);
    }

    fn set_changed(&mut self, from: Side) {
        if let Some(is_changed) = self.is_changed.get_mut(from.index()) {
            *is_changed = true;
        }
    }

    /// Whether this side has sent ChangeCipherSpec.
    pub fn has_changed(&self, from: Side) -> bool {
        self.is_changed.get(from.index()).copied().unwrap_or_default()
    }
}

/// The fields of a ServerHello (RFC 5246 §7.4.1.3, RFC 8446 §4.1.3) that later records depend on.
#[derive(Default)]
struct ServerHello<'a> {
    version: u16,
    session_id: &'a [u8],
    cipher_suite: u16,
    is_encrypt_then_mac: bool,
    is_hmac_truncated: bool,
    is_raw_public_key: bool,
    selected_key: Option<u16>,
    connection_id: Option<u8>,
    alpn: Option<&'a [u8]>,
}

impl<'a> ServerHello<'a> {
    fn read(body: &'a [u8]) -> Result<Self, Short> {
        let mut cursor = Cursor::new(body);
        let version = cursor.u16()?;
        cursor.take(32)?;
        let mut hello = Self { version, ..Self::default() };
        if version >> 8 == 0x7f && version < DRAFT_WITH_SESSION_ID {
            hello.cipher_suite = cursor.u16()?;
        } else {
            hello.session_id = vector8(&mut cursor)?;
            hello.cipher_suite = cursor.u16()?;
            cursor.u8()?;
        }
        for (kind, data) in Extensions::new(&mut cursor) {
            hello.extension(kind, data);
        }
        Ok(hello)
    }

    fn extension(&mut self, kind: u16, data: &'a [u8]) {
        match kind {
            SUPPORTED_VERSIONS => self.version = Cursor::new(data).u16().unwrap_or(self.version),
            PRE_SHARED_KEY => self.selected_key = Cursor::new(data).u16().ok(),
            ENCRYPT_THEN_MAC => self.is_encrypt_then_mac = true,
            TRUNCATED_HMAC => self.is_hmac_truncated = true,
            SERVER_CERTIFICATE_TYPE => self.is_raw_public_key = data.first() == Some(&RAW_PUBLIC_KEY),
            CONNECTION_ID | CONNECTION_ID_DRAFT => self.connection_id = data.first().copied(),
            ALPN => self.alpn = Some(data),
            _ => {}
        }
    }
}

/// Extensions one after another (RFC 8446 §4.2), the last one as far as it is there.
struct Extensions<'a> {
    cursor: Cursor<'a>,
}

impl<'a> Extensions<'a> {
    /// The extensions at the end of a hello; none where it has none.
    fn new(cursor: &mut Cursor<'a>) -> Self {
        let length = usize::from(cursor.u16().unwrap_or(0));
        let rest = cursor.rest();
        Self { cursor: Cursor::new(rest.get(..length).unwrap_or(rest)) }
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let kind = self.cursor.u16().ok()?;
        let length = usize::from(self.cursor.u16().ok()?);
        let rest = self.cursor.rest();
        let data = self.cursor.take(length.min(rest.len())).ok()?;
        Some((kind, data))
    }
}

fn vector8<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Short> {
    let length = cursor.u8()?;
    cursor.take(length.into())
}

fn vector16<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Short> {
    let length = cursor.u16()?;
    cursor.take(length.into())
}

/// RFC 6066 §3: the first name of type host_name.
fn show_server_name(data: &[u8], message: &mut Message) -> Result<(), Short> {
    let mut cursor = Cursor::new(data);
    cursor.u16()?;
    while !cursor.is_empty() {
        let kind = cursor.u8()?;
        let name = vector16(&mut cursor)?;
        if kind == 0 {
            message.server_name.set_bytes(name);
            break;
        }
    }
    Ok(())
}

/// RFC 7301 §3.1: all names.
fn show_alpn(data: &[u8], message: &mut Message) -> Result<(), Short> {
    let mut cursor = Cursor::new(data);
    cursor.u16()?;
    message.alpn.start();
    while !cursor.is_empty() {
        let name = vector8(&mut cursor)?;
        message.alpn.more(",").push_str(&String::from_utf8_lossy(name));
    }
    Ok(())
}

/// RFC 8446 §4.2.11: bit n is set where identity n has the obfuscated_ticket_age 0.
fn external_keys(data: &[u8]) -> Result<u32, Short> {
    let mut outer = Cursor::new(data);
    let mut cursor = Cursor::new(vector16(&mut outer)?);
    let mut keys = 0;
    for bit in 0..32 {
        if cursor.is_empty() {
            break;
        }
        vector16(&mut cursor)?;
        let is_external = cursor.u32()? == 0;
        keys |= u32::from(is_external) << bit;
    }
    Ok(keys)
}
