//! CoAP codes (IANA "CoAP Codes"): class and detail, by name for requests and as c.dd for responses.

use crate::message::Message;

/// Methods (RFC 7252 §12.1.1, RFC 8132 §4).
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "iPATCH"];

/// Response codes and signaling codes: class * 32 + detail (RFC 7252 §12.1.2, RFC 7959 §2.9, RFC 8132 §4, RFC 8323 §5, RFC 8516, RFC 8768 §6).
#[rustfmt::skip]
const OTHERS: &[(u8, &str)] = &[
    (65, "2.01"), (66, "2.02"), (67, "2.03"), (68, "2.04"), (69, "2.05"), (95, "2.31"),
    (128, "4.00"), (129, "4.01"), (130, "4.02"), (131, "4.03"), (132, "4.04"), (133, "4.05"), (134, "4.06"), (136, "4.08"), (137, "4.09"),
    (140, "4.12"), (141, "4.13"), (143, "4.15"), (150, "4.22"), (157, "4.29"),
    (160, "5.00"), (161, "5.01"), (162, "5.02"), (163, "5.03"), (164, "5.04"), (165, "5.05"), (168, "5.08"),
    (225, "7.01"), (226, "7.02"), (227, "7.03"), (228, "7.04"), (229, "7.05"),
];

/// Whether a code is that of a request (class 0, RFC 7252 §5.8).
#[inline]
#[must_use]
pub const fn is_request(code: u8) -> bool {
    code > 0 && code < 32
}

/// Whether a code is that of a signal (class 7, RFC 8323 §5), which only reliable transports have.
pub(super) const fn is_signal(code: u8) -> bool {
    code >> 5 == 7
}

/// A code's name: the method, or c.dd; empty for an Empty message, "unassigned" for a code that IANA has not assigned.
#[inline]
#[must_use]
pub fn variant(code: u8) -> &'static str {
    match code {
        0 => "",
        // by far the commonest
        69 => "2.05",
        1..=7 => METHODS.get(usize::from(code) - 1).copied().unwrap_or(""),
        _ => OTHERS.iter().find(|row| row.0 == code).map_or("unassigned", |row| row.1),
    }
}

/// Whether IANA has assigned a code.
#[must_use]
pub fn is_known(code: u8) -> bool {
    variant(code) != "unassigned"
}

/// The code that the application means: the inner message's, where OSCORE's was opened.
#[inline]
pub(super) fn code_of(message: &Message) -> Option<u8> {
    message.inner_code.or(message.code)
}

/// Whether a response tells of success (RFC 7252 §5.9.1).
pub(super) fn is_success(message: &Message) -> bool {
    code_of(message).is_some_and(|code| code >> 5 == 2)
}
