//! The registries of TLS that messages show: content types, handshake types, alerts.

/// Content types (RFC 8446 §5.1, RFC 6520 §6, RFC 9146 §4, RFC 9147 §5.7) with Wireshark's names.
const CONTENT_TYPES: &[(u8, &str)] = &[
    (CHANGE_CIPHER_SPEC, "Change Cipher Spec"),
    (ALERT, "Alert"),
    (HANDSHAKE, "Handshake"),
    (APPLICATION_DATA, "Application Data"),
    (HEARTBEAT, "Heartbeat"),
    (TLS12_CID, "tls12_cid"),
    (ACK, "ACK"),
];

pub const CHANGE_CIPHER_SPEC: u8 = 20;
pub const ALERT: u8 = 21;
pub const HANDSHAKE: u8 = 22;
pub const APPLICATION_DATA: u8 = 23;
pub const HEARTBEAT: u8 = 24;
pub const TLS12_CID: u8 = 25;
pub const ACK: u8 = 26;

/// Handshake types (IANA "TLS HandshakeType") with Wireshark's names.
const HANDSHAKE_TYPES: &[(u8, &str)] = &[
    (0, "Hello Request"),
    (CLIENT_HELLO, "Client Hello"),
    (SERVER_HELLO, "Server Hello"),
    (3, "Hello Verify Request"),
    (4, "New Session Ticket"),
    (5, "End of Early Data"),
    (6, HELLO_RETRY_REQUEST),
    (8, "Encrypted Extensions"),
    (9, "Request Connection ID"),
    (10, "New Connection ID"),
    (CERTIFICATE, "Certificate"),
    (12, "Server Key Exchange"),
    (13, "Certificate Request"),
    (SERVER_HELLO_DONE, "Server Hello Done"),
    (15, "Certificate Verify"),
    (16, "Client Key Exchange"),
    (17, "Client Certificate Request"),
    (20, "Finished"),
    (21, "Client Certificate URL"),
    (22, "Certificate Status"),
    (23, "Supplemental Data"),
    (24, "Key Update"),
    (25, "Compressed Certificate"),
    (67, "Encrypted Extensions"),
];

pub const CLIENT_HELLO: u8 = 1;
pub const SERVER_HELLO: u8 = 2;
pub const CERTIFICATE: u8 = 11;
pub const SERVER_HELLO_DONE: u8 = 14;

/// The name of a ServerHello with the random of RFC 8446 §4.1.3, and of the message that early drafts had instead.
pub const HELLO_RETRY_REQUEST: &str = "Hello Retry Request";

/// The variant of messages that cannot be read.
pub const ENCRYPTED: &str = "encrypted";

/// Alert descriptions (RFC 8446 §6, IANA "TLS Alerts").
const ALERTS: &[(u8, &str)] = &[
    (0, "close_notify"),
    (10, "unexpected_message"),
    (20, "bad_record_mac"),
    (21, "decryption_failed"),
    (22, "record_overflow"),
    (30, "decompression_failure"),
    (40, "handshake_failure"),
    (41, "no_certificate"),
    (42, "bad_certificate"),
    (43, "unsupported_certificate"),
    (44, "certificate_revoked"),
    (45, "certificate_expired"),
    (46, "certificate_unknown"),
    (47, "illegal_parameter"),
    (48, "unknown_ca"),
    (49, "access_denied"),
    (50, "decode_error"),
    (51, "decrypt_error"),
    (52, "too_many_cids_requested"),
    (60, "export_restriction"),
    (70, "protocol_version"),
    (71, "insufficient_security"),
    (80, "internal_error"),
    (86, "inappropriate_fallback"),
    (90, "user_canceled"),
    (100, "no_renegotiation"),
    (109, "missing_extension"),
    (110, "unsupported_extension"),
    (111, "certificate_unobtainable"),
    (112, "unrecognized_name"),
    (113, "bad_certificate_status_response"),
    (114, "bad_certificate_hash_value"),
    (115, "unknown_psk_identity"),
    (116, "certificate_required"),
    (120, "no_application_protocol"),
    (121, "ech_required"),
];

fn name(of: u8, registry: &[(u8, &'static str)]) -> Option<&'static str> {
    registry.iter().find(|(number, _)| *number == of).map(|(_, name)| *name)
}

/// The name of a content type.
pub fn content_type(number: u8) -> Option<&'static str> {
    name(number, CONTENT_TYPES)
}

/// The name of a handshake type; none where no standard has it.
pub fn handshake_type(number: u8) -> Option<&'static str> {
    name(number, HANDSHAKE_TYPES)
}

/// The name of an alert's description.
pub fn alert(description: u8) -> &'static str {
    name(description, ALERTS).unwrap_or("unknown")
}

/// The name of an alert's level.
pub const fn alert_level(level: u8) -> &'static str {
    match level {
        1 => "warning",
        2 => "fatal",
        _ => "unknown",
    }
}
