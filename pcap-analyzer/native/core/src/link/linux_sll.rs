//! Linux cooked capture (LINKTYPE_LINUX_SLL and LINUX_SLL2): what `-i any` records instead of a link header.

use super::{ethernet, ieee802154, Inside};
use crate::layer::Layer;

const HEADER_V1: usize = 16;
const HEADER_V2: usize = 20;
/// A frame of IEEE 802.15.4 without its check sequence.
const ETH_P_IEEE802154: u16 = 0x00f6;
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
        (_, ETH_P_IEEE802154) => ieee802154::open(layer),
        (_, 0..=0x05ff) => Inside::Other("sll"),
        (_, protocol) => ethernet::by_type(protocol, layer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_ieee_802_15_4_are_opened_in_both_versions() {
        // linux/if_ether.h: ETH_P_IEEE802154 is 0x00f6; linux/if_arp.h: ARPHRD_IEEE802154 is 804. A data frame from 1 to 2 with IPv6 written out
        let frame = [0x61, 0x98, 7, 0xcd, 0xab, 2, 0, 1, 0, 0x41, 0x60];
        let first = [&[0, 0, 3, 0x24, 0, 8], &[0; 8][..], &[0, 0xf6], &frame].concat();
        let second = [&[0, 0xf6, 0, 0, 0, 0, 0, 3, 3, 0x24, 0, 8], &[0; 8][..], &frame].concat();

        for inside in [open_v1(Layer::new(&first, 27)), open_v2(Layer::new(&second, 31))] {
            assert!(matches!(inside, Inside::LowPan(layer, ..) if layer.captured == [0x41, 0x60]), "{inside:?}");
        }
    }
}
