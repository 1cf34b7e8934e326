//! IEEE 802.11 data frames (2020 §9.3.2.1), with and without a radiotap (<https://www.radiotap.org>) or PPI header. What is encrypted stays so.

use super::{ethernet, Inside};
use crate::layer::Layer;

/// Frame control: type in bits 2 and 3, subtype in bits 4 to 7; of the second byte to DS, from DS, …, protected, order.
const DATA: u8 = 2;
const QOS: u8 = 0x8;
const NO_DATA: u8 = 0x4;
const TO_AND_FROM_DS: u8 = 0x03;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;
/// QoS control: the content is an aggregate (A-MSDU).
const AGGREGATE: u8 = 0x80;

/// LINKTYPE_IEEE802_11.
pub(super) fn open(layer: Layer<'_>) -> Inside<'_> {
    frame(layer, false)
}

fn frame(layer: Layer<'_>, is_padded: bool) -> Inside<'_> {
    let Some(&[kind, flags]) = layer.first() else { return Inside::Cut("wlan") };
    let subtype = kind >> 4;
    if kind >> 2 & 3 != DATA || subtype & NO_DATA != 0 {
        return Inside::Other("wlan");
    }
    if flags & PROTECTED != 0 {
        return Inside::Encrypted("wlan");
    }
    let addresses = if flags & TO_AND_FROM_DS == TO_AND_FROM_DS { 30 } else { 24 };
    let is_qos = subtype & QOS != 0;
    if is_qos && layer.u8(addresses).is_some_and(|control| control & AGGREGATE != 0) {
        return Inside::Other("wlan");
    }
    let header = addresses + if is_qos { 2 } else { 0 } + if is_qos && flags & ORDER != 0 { 4 } else { 0 };
    ethernet::llc(layer.strip(if is_padded { header.next_multiple_of(4) } else { header }))
}

/// LINKTYPE_IEEE802_11_RADIOTAP: version, pad, length, words that say which fields are there, fields. The second field, behind a timestamp of eight bytes,
/// says whether the frame ends with a check sequence and whether its header is padded.
pub(super) fn open_radiotap(layer: Layer<'_>) -> Inside<'_> {
    const EXTENDED: u32 = 1 << 31;
    const TIMESTAMP: u32 = 1;
    const FLAGS: u32 = 2;
    const HAS_FCS: u8 = 0x10;
    const HAS_PAD: u8 = 0x20;
    let Some(&[_, _, low, high]) = layer.first() else { return Inside::Cut("radiotap") };
    let length = usize::from(u16::from_le_bytes([low, high]));
    let word = |at: usize| layer.array(at).map(|bytes| u32::from_le_bytes(*bytes));
    let Some(present) = word(4) else { return Inside::Cut("radiotap") };
    let mut at = 4;
    while word(at).is_some_and(|word| word & EXTENDED != 0) {
        at += 4;
    }
    at += 4;
    if present & TIMESTAMP != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if present & FLAGS != 0 && at < length { layer.u8(at).unwrap_or(0) } else { 0 };
    let inside = layer.strip(length);
    let fcs_bytes = if flags & HAS_FCS != 0 { 4 } else { 0 };
    frame(inside.cap(inside.wire_bytes.saturating_sub(fcs_bytes)), flags & HAS_PAD != 0)
}

/// LINKTYPE_PPI: version, flags, length, link type of what follows.
pub(super) fn open_ppi(layer: Layer<'_>) -> Inside<'_> {
    let Some(&[_, _, low, high, link, 0, 0, 0]) = layer.first() else { return Inside::Cut("ppi") };
    let inside = layer.strip(u16::from_le_bytes([low, high]).into());
    super::find(link.into()).filter(|row| row.number != 192).map_or(Inside::Other("ppi"), |row| (row.open)(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// QoS data from a station to its access point: IPv4 behind LLC and SNAP.
    const FRAME: [u8; 35] =
        [0x88, 0x01, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 3, 0x10, 0, 0, 0, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45];

    #[test]
    fn data_frames_are_opened_with_and_without_radiotap() {
        let with_fcs: Vec<u8> = [&[0, 0, 9, 0, 2, 0, 0, 0, 0x10], &FRAME[..], &[1, 2, 3, 4]].concat();

        assert!(matches!(open(Layer::new(&FRAME, 35)), Inside::Ip(layer) if layer.captured == [0x45] && layer.wire_bytes == 1));
        assert!(matches!(open_radiotap(Layer::new(&with_fcs, 48)), Inside::Ip(layer) if layer.captured == [0x45] && layer.wire_bytes == 1));
    }

    #[test]
    fn encrypted_and_empty_frames_are_not() {
        let mut protected = FRAME;
        protected[1] |= 0x40;

        assert_eq!(Inside::Encrypted("wlan"), open(Layer::new(&protected, 35)));
        assert_eq!(Inside::Other("wlan"), open(Layer::new(&[0xc8, 1], 26)));
    }
}
