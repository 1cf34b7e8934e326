//! Linux cooked capture (LINKTYPE_LINUX_SLL and LINUX_SLL2): what `-i any` records instead of a link header.

use super::{ethernet, Inside};
use crate::layer::Layer;

const HEADER_V1: usize = 16;
const HEADER_V2: usize = 20;
/// ARPHRD_NETLINK: the protocol field is a netlink family.
const NETLINK: u16 = 824;

/// Version 1: packet type, ARPHRD_ type, address length, address, protocol.
#[inline]
pub(super) fn open_v1(layer: Layer<'_>) -> Inside<'_> {
    match (layer.u16(2), layer.u16(14)) {
        (Some(kind), Some(protocol)) => by_protocol(kind, protocol, layer.strip(HEADER_V1)),
        _ => Inside::Cut("sll"),
    }
}

/// Version 2: protocol, reserved, interface, ARPHRD_ type, packet type, address length, address.
#[inline]
pub(super) fn open_v2(layer: Layer<'_>) -> Inside<'_> {
    match (layer.u16(0), layer.u16(8), layer.u16(18)) {
        (Some(protocol), Some(kind), Some(_)) => by_protocol(kind, protocol, layer.strip(HEADER_V2)),
        _ => Inside::Cut("sll"),
    }
}

#[inline]
fn by_protocol(kind: u16, protocol: u16, layer: Layer<'_>) -> Inside<'_> {
    match (kind, protocol) {
        (NETLINK, _) => Inside::Other("netlink"),
        (_, 0x0004) => ethernet::llc(layer),
        (_, 0..=0x05ff) => Inside::Other("sll"),
        (_, protocol) => ethernet::by_type(protocol, layer),
    }
}
