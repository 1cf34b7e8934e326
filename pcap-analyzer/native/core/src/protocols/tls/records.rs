//! What the columns of a (D)TLS record say: who pays for its bytes, and its alert.

use super::handshake::Association;
use super::names;
use crate::bytes::count;
use crate::message::Message;
use std::fmt::Write as _;

/// All bytes of the record are the security layer's: what handshakes, alerts and changes of keys cost.
pub fn is_all_security(message: &mut Message, len: usize) {
    message.security_bytes = count(len);
}

/// A protected record: `fragment` bytes behind `header` ones. Where the content's size follows from the cipher suite, content is opaque and
/// all else security; where not, all but the header is opaque.
#[inline]
pub fn protect(association: &Association, message: &mut Message, header: usize, fragment: usize) {
    let content = association.agreement.and_then(|agreement| agreement.content_bytes(fragment));
    // with a connection ID, the record's own content type stands behind its content (RFC 9146 §4)
    let content = if message.content_type == Some(names::TLS12_CID) { content.and_then(|bytes| bytes.checked_sub(1)) } else { content };
    message.facts.is_encrypted = association.agreement.is_none_or(|agreement| agreement.is_encrypted());
    message.plaintext_bytes = content.map(count);
    message.fragment_bytes = count(fragment);
    let opaque = content.unwrap_or(fragment);
    message.security_bytes = count(header + fragment - opaque);
    message.opaque_bytes = count(opaque);
}

/// A protected record of the handshake: its content's size is shown, and all bytes are the security layer's.
pub fn protect_handshake(association: &Association, message: &mut Message, header: usize, fragment: usize) {
    protect(association, message, header, fragment);
    is_all_security(message, header + fragment);
    message.opaque_bytes = 0;
    message.variant = names::ENCRYPTED;
    carries_handshake_on(message);
}

/// A record of TLS 1.3 that looks like application data and was opened: it is of another content type (RFC 8446 §5.2), a ticket or an alert as a rule.
/// As up to TLS 1.2, a protected alert is none of the handshake.
pub fn show_hidden(message: &mut Message, number: u8) {
    let bytes = message.security_bytes + message.opaque_bytes;
    is_all_security(message, bytes as usize);
    message.opaque_bytes = 0;
    message.kind = names::content_type(number).unwrap_or("Application Data");
    message.variant = names::ENCRYPTED;
    message.facts.is_handshake = number == names::HANDSHAKE;
    message.facts.is_encrypted = !message.facts.is_handshake;
}

/// The record holds handshake messages.
pub fn carries_handshake_on(message: &mut Message) {
    message.facts.is_handshake = true;
    message.facts.is_of_flight = true;
}

/// An alert in the clear: level and description (RFC 8446 §6). Its level decides whether a handshake failed, so it is always shown. Once a handshake
/// is completed alerts are protected, so this one is counted with the handshake.
pub fn show_alert(message: &mut Message, fragment: &[u8]) {
    message.facts.is_handshake = true;
    let [level, description, ..] = fragment else { return };
    let name = names::alert(*description);
    message.variant = name;
    let _ = write!(message.alert.start(), "{} {name}", names::alert_level(*level));
}
