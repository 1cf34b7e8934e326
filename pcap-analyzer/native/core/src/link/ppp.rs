//! PPP (RFC 1661), also in HDLC-like framing (RFC 1662), and Cisco's HDLC.

use super::{ethernet, Inside};
use crate::layer::Layer;

/// PPP with or without address and control field, which negotiation may leave out.
pub(super) fn open(layer: Layer<'_>) -> Inside<'_> {
    match layer.first() {
        Some([0xff, 0x03]) => by_protocol(layer.strip(2)),
        Some(_) => by_protocol(layer),
        None => Inside::Cut("ppp"),
    }
}

/// PPP behind one byte that tells the direction (LINKTYPE_PPP_WITH_DIR).
pub(super) fn open_with_direction(layer: Layer<'_>) -> Inside<'_> {
    open(layer.strip(1))
}

/// Serial PPP: HDLC framing, or Cisco HDLC where the address says so (LINKTYPE_PPP_HDLC).
pub(super) fn open_hdlc(layer: Layer<'_>) -> Inside<'_> {
    match layer.u8(0) {
        Some(0x0f | 0x8f) => open_cisco(layer),
        _ => open(layer),
    }
}

/// Cisco HDLC: address, control, Ethernet type.
pub(super) fn open_cisco(layer: Layer<'_>) -> Inside<'_> {
    match layer.u16(2) {
        Some(kind @ 0x0600..) => ethernet::by_type(kind, layer.strip(4)),
        Some(_) => Inside::Other("chdlc"),
        None => Inside::Cut("chdlc"),
    }
}

/// What follows PPP's protocol field, which is one byte where compressed (an odd first byte).
pub(super) fn by_protocol(layer: Layer<'_>) -> Inside<'_> {
    let (protocol, inside) = match layer.captured {
        [short, ..] if short & 1 == 1 => (u16::from(*short), layer.strip(1)),
        [high, low, ..] => (u16::from_be_bytes([*high, *low]), layer.strip(2)),
        _ => return Inside::Cut("ppp"),
    };
    match protocol {
        0x0021 | 0x0057 => Inside::Ip(inside),
        0x0281 | 0x0283 => ethernet::by_type(0x8847, inside),
        _ => Inside::Other("ppp"),
    }
}
