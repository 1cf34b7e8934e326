//! Ethernet (IEEE 802.3): type or length, VLAN tags (IEEE 802.1Q, 802.1ad), LLC with SNAP (IEEE 802.2), PPPoE (RFC 2516), MPLS (RFC 3032).

use super::Inside;
use crate::layer::Layer;

const HEADER: usize = 14;
/// More tags or labels than anybody stacks.
const DEEPEST: usize = 16;

/// Takes the Ethernet header and its tags off.
#[inline]
pub(super) fn open(layer: Layer<'_>) -> Inside<'_> {
    match layer.u16(12) {
        Some(kind) => by_type(kind, layer.strip(HEADER)),
        None => Inside::Cut("eth"),
    }
}

/// What follows an Ethernet type field, outside of Ethernet too.
#[inline]
#[must_use]
pub fn by_type(kind: u16, layer: Layer<'_>) -> Inside<'_> {
    match kind {
        0x0800 | 0x86dd => Inside::Ip(layer),
        _ => by_rarer_type(kind, layer),
    }
}

fn by_rarer_type(mut kind: u16, mut layer: Layer<'_>) -> Inside<'_> {
    for _ in 0..DEEPEST {
        match kind {
            0x0800 | 0x86dd => return Inside::Ip(layer),
            0x0806 => return Inside::Other("arp"),
            0x8035 => return Inside::Other("rarp"),
            0x8847 | 0x8848 => return mpls(layer),
            0x8863 => return Inside::Other("pppoed"),
            0x8864 => return pppoe_session(layer),
            0x888e => return Inside::Other("eapol"),
            0x88cc => return Inside::Other("lldp"),
            0x88e5 => return Inside::Other("macsec"),
            0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => match layer.u16(2) {
                Some(tagged) => (kind, layer) = (tagged, layer.strip(4)),
                None => return Inside::Cut("vlan"),
            },
            0..=1500 => return llc(layer),
            _ => return Inside::Other("eth"),
        }
    }
    Inside::Other("vlan")
}

/// IEEE 802.2 logical link control: with SNAP an Ethernet type follows.
pub(super) fn llc(layer: Layer<'_>) -> Inside<'_> {
    match layer.first() {
        Some([0xaa, 0xaa, 0x03, 0, 0, 0 | 0xf8, high, low]) => by_snap(u16::from_be_bytes([*high, *low]), layer.strip(8)),
        Some([0x06, 0x06, 0x03, ..]) => Inside::Ip(layer.strip(3)),
        Some([0x42, 0x42, ..]) => Inside::Other("stp"),
        Some(_) => Inside::Other("llc"),
        None if layer.is_cut() => Inside::Cut("llc"),
        None => Inside::Other("llc"),
    }
}

fn by_snap(kind: u16, layer: Layer<'_>) -> Inside<'_> {
    if kind <= 1500 {
        return Inside::Other("llc");
    }
    by_rarer_type(kind, layer)
}

/// MPLS label stack; what follows the last label is told by its first four bits.
fn mpls(mut layer: Layer<'_>) -> Inside<'_> {
    for _ in 0..DEEPEST {
        let Some([_, _, bottom, _]) = layer.first() else { return Inside::Cut("mpls") };
        layer = layer.strip(4);
        if bottom & 1 == 1 {
            return match layer.u8(0).map(|first| first >> 4) {
                Some(4 | 6) => Inside::Ip(layer),
                Some(0) if layer.u16(16).is_some() => open(layer.strip(4)),
                Some(_) => Inside::Other("mpls"),
                None => Inside::Cut("mpls"),
            };
        }
    }
    Inside::Other("mpls")
}

/// PPPoE session stage: six bytes, then PPP's protocol number.
pub(super) fn pppoe_session(layer: Layer<'_>) -> Inside<'_> {
    if layer.captured.len() < 6 {
        return Inside::Cut("pppoes");
    }
    super::ppp::by_protocol(layer.strip(6))
}
