//! Link layers: one envelope a file. `LINK_TYPES` is the table by LINKTYPE number (<https://www.tcpdump.org/linktypes.html>).

mod ethernet;
mod ieee80211;
pub mod ieee802154;
mod linux_sll;
mod loopback;
mod ppp;
mod raw_ip;
pub mod sent_again;
pub mod sixlowpan;

pub use ethernet::by_type as by_ethernet_type;

use crate::layer::Layer;

/// What a link envelope turned out to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside<'a> {
    /// An IPv4 or IPv6 packet, with what stands behind it in the frame.
    Ip(Layer<'a>),
    /// IPv6 in 6LoWPAN's form, between these link addresses; of a frame with a sequence number a digest, which it has again where it is sent again.
    LowPan(Layer<'a>, ieee802154::LinkAddresses, Option<u64>),
    /// Data that the link layer encrypts; the filter name of the link layer.
    Encrypted(&'static str),
    /// Something else, by Wireshark's filter name.
    Other(&'static str),
    /// Cut by the snap length before it could be told; the name of the layer that is cut.
    Cut(&'static str),
}

/// A link type that is decoded.
#[derive(Debug)]
pub struct LinkType {
    /// LINKTYPE_ number.
    pub number: u16,
    /// Wireshark's filter name.
    pub name: &'static str,
    /// Whether the link carries no more than 1,500 bytes of IP in a frame as a rule.
    pub is_ethernet: bool,
    /// Takes the envelope off. A frame check sequence that the capture announces is already gone.
    pub open: for<'a> fn(Layer<'a>) -> Inside<'a>,
}

/// All link types that are decoded.
pub const LINK_TYPES: &[LinkType] = &[
    LinkType { number: 0, name: "null", is_ethernet: false, open: loopback::open },
    LinkType { number: 1, name: "eth", is_ethernet: true, open: ethernet::open },
    LinkType { number: 9, name: "ppp", is_ethernet: false, open: ppp::open },
    LinkType { number: 12, name: "raw", is_ethernet: false, open: raw_ip::open },
    LinkType { number: 14, name: "raw", is_ethernet: false, open: raw_ip::open },
    LinkType { number: 50, name: "ppp", is_ethernet: false, open: ppp::open_hdlc },
    LinkType { number: 51, name: "pppoes", is_ethernet: false, open: ethernet::pppoe_session },
    LinkType { number: 101, name: "raw", is_ethernet: false, open: raw_ip::open },
    LinkType { number: 104, name: "chdlc", is_ethernet: false, open: ppp::open_cisco },
    LinkType { number: 105, name: "wlan", is_ethernet: false, open: ieee80211::open },
    LinkType { number: 108, name: "loop", is_ethernet: false, open: loopback::open },
    LinkType { number: 113, name: "sll", is_ethernet: true, open: linux_sll::open_v1 },
    LinkType { number: 127, name: "radiotap", is_ethernet: false, open: ieee80211::open_radiotap },
    LinkType { number: 192, name: "ppi", is_ethernet: false, open: ieee80211::open_ppi },
    LinkType { number: 195, name: "wpan", is_ethernet: false, open: ieee802154::open_with_fcs },
    LinkType { number: 204, name: "ppp", is_ethernet: false, open: ppp::open_with_direction },
    LinkType { number: 215, name: "wpan-nonask-phy", is_ethernet: false, open: ieee802154::open_phy },
    LinkType { number: 228, name: "raw", is_ethernet: false, open: raw_ip::open },
    LinkType { number: 229, name: "raw", is_ethernet: false, open: raw_ip::open },
    LinkType { number: 230, name: "wpan", is_ethernet: false, open: ieee802154::open },
    LinkType { number: 276, name: "sll", is_ethernet: true, open: linux_sll::open_v2 },
    LinkType { number: 283, name: "wpan-tap", is_ethernet: false, open: ieee802154::open_tap },
];

/// The row of a link type.
#[must_use]
pub fn find(number: u16) -> Option<&'static LinkType> {
    LINK_TYPES.iter().find(|link_type| link_type.number == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_of_numbers_without_repetition() {
        assert!(LINK_TYPES.is_sorted_by(|a, b| a.number < b.number));
    }

    #[test]
    fn every_link_type_says_that_an_empty_frame_is_cut() {
        for link_type in LINK_TYPES {
            assert!(matches!((link_type.open)(Layer::new(&[], 60)), Inside::Cut(_)), "{}", link_type.name);
        }
    }
}
