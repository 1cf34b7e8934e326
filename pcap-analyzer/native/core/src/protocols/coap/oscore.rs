//! OSCORE (RFC 8613): the message inside, once it was opened.

use super::{is_request, options, variant};
use crate::bytes::Cursor;
use crate::message::Message;

/// Puts the inner message's code, options and payload in the place of the outer one's (RFC 8613 §5.3: plaintext is code, options, marker, payload).
/// The tag behind it is security; the outer Observe, which orders notifications (§4.1.3.5.2), stays.
pub fn show_inner(message: &mut Message, plaintext: &[u8]) {
    let plain_bytes = u32::try_from(plaintext.len()).unwrap_or(u32::MAX);
    let mut cursor = Cursor::new(plaintext);
    let (Ok(code), Some(tag_bytes)) = (cursor.u8(), message.opaque_bytes.checked_sub(plain_bytes)) else { return };
    let observe = message.observe;
    message.row.inner_code = Some(code);
    message.row.variant = variant(code);
    message.facts.is_opening = is_request(code);
    message.facts.is_encrypted = false;
    let Ok(told) = options::read(&mut cursor, message) else { return };
    message.row.observe = observe.or(message.observe);
    let payload = cursor.rest().to_vec();
    let payload_bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let header_bytes = 1 + u32::from(told.has_marker);
    message.row.security_bytes += tag_bytes;
    message.row.header_bytes += header_bytes;
    message.row.option_bytes += plain_bytes - payload_bytes - header_bytes;
    (message.row.payload_bytes, message.row.opaque_bytes) = (payload_bytes, 0);
    message.content = payload;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plaintext_of_rfc_8613_appendix_c_4_takes_the_outer_messages_place() {
        // C.4: 0x01 b3 "tv1" inside POST with a ciphertext of 13 bytes
        let mut message = Message { wants_text: true, ..Message::default() };
        message.row.code = Some(2);
        (message.row.header_bytes, message.row.security_bytes, message.row.opaque_bytes) = (9, 4, 13);

        show_inner(&mut message, &[0x01, 0xb3, 0x74, 0x76, 0x31]);

        assert_eq!((Some(2), Some(1), "GET", Some("tv1")), (message.code, message.inner_code, message.variant, message.uri_path.get()));
        assert_eq!((10, 4, 12, 0), (message.header_bytes, message.option_bytes, message.security_bytes, message.payload_bytes));
    }
}
