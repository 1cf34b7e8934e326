//! IEEE 802.15.4 MAC frames (2006 §7.2, 2015 §7.2), with and without check sequence, and behind the TAP header.

use super::{sixlowpan, Inside};
use crate::bytes::{hash, Cursor, Short};
use crate::layer::Layer;

/// A link address; what an IPv6 interface identifier is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkAddress {
    /// None in the frame.
    #[default]
    Absent,
    /// 16 bits, with the PAN it is in.
    Short(u16, u16),
    /// EUI-64.
    Extended([u8; 8]),
    /// The interface identifier of an IPv6 header, which is to the header within it what a link address is to the outermost (RFC 6282 §3.2.2).
    Identifier([u8; 8]),
}

impl LinkAddress {
    /// As eight bytes, to tell addresses apart.
    #[must_use]
    pub const fn bytes(self) -> [u8; 8] {
        match self {
            Self::Absent => [0; 8],
            Self::Short(pan, short) => {
                let ([p0, p1], [s0, s1]) = (pan.to_be_bytes(), short.to_be_bytes());
                [p0, p1, 0, 0xff, 0xfe, 0, s0, s1]
            }
            Self::Extended(octets) | Self::Identifier(octets) => octets,
        }
    }
}

/// Sender and receiver of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkAddresses {
    /// Sender.
    pub source: LinkAddress,
    /// Receiver.
    pub destination: LinkAddress,
}

/// LINKTYPE_IEEE802_15_4_WITHFCS: the last two bytes are a check sequence.
pub(super) fn open_with_fcs(layer: Layer<'_>) -> Inside<'_> {
    open(layer.cap(layer.wire_bytes.saturating_sub(2)))
}

/// LINKTYPE_IEEE802_15_4_NONASK_PHY: the frame as it is on the air, with preamble, delimiter and length (2006 §6.3), and its check sequence.
pub(super) fn open_phy(layer: Layer<'_>) -> Inside<'_> {
    let Some(&[_, _, _, _, _, length]) = layer.first() else { return Inside::Cut("wpan-nonask-phy") };
    open_with_fcs(layer.strip(6).cap(u32::from(length & 0x7f)))
}

/// LINKTYPE_IEEE802_15_4_TAP: a header of type-length-values, one of which tells the check sequence's length.
pub(super) fn open_tap(layer: Layer<'_>) -> Inside<'_> {
    let Some(&[_, _, l0, l1]) = layer.first() else { return Inside::Cut("wpan-tap") };
    let length = usize::from(u16::from_le_bytes([l0, l1]));
    let Some(mut values) = layer.captured.get(4..length) else { return Inside::Cut("wpan-tap") };
    let mut fcs_bytes = 0;
    while let Some((&[t0, t1, l0, l1], after)) = values.split_first_chunk() {
        let value_bytes = usize::from(u16::from_le_bytes([l0, l1]));
        if let (0, Some(kind)) = (u16::from_le_bytes([t0, t1]), after.first()) {
            fcs_bytes = u32::from(*kind) * 2;
        }
        values = after.get(value_bytes.next_multiple_of(4)..).unwrap_or(&[]);
    }
    let frame = layer.strip(length);
    open(frame.cap(frame.wire_bytes.saturating_sub(fcs_bytes)))
}

/// A frame without check sequence.
pub(super) fn open(layer: Layer<'_>) -> Inside<'_> {
    let mut cursor = Cursor::new(layer.captured);
    match header(&mut cursor) {
        Ok(Header::Data { addresses, mic_bytes, is_numbered }) => {
            let inside = layer.strip(cursor.offset());
            let inside = inside.cap(inside.wire_bytes.saturating_sub(mic_bytes));
            match inside.u8(0) {
                Some(dispatch) if sixlowpan::is_dispatch(dispatch) => {
                    Inside::LowPan(inside, addresses, is_numbered.then(|| hash(layer.captured)))
                }
                Some(_) => Inside::Other("wpan"),
                None if inside.is_cut() => Inside::Cut("wpan"),
                None => Inside::Other("wpan"),
            }
        }
        Ok(Header::Encrypted) => Inside::Encrypted("wpan"),
        Ok(Header::Other) => Inside::Other("wpan"),
        Err(_) if layer.is_cut() || layer.wire_bytes == 0 => Inside::Cut("wpan"),
        Err(_) => Inside::Other("wpan"),
    }
}

enum Header {
    /// A data frame that can be read, with the length of its message integrity code, and whether it has a sequence number.
    Data { addresses: LinkAddresses, mic_bytes: u32, is_numbered: bool },
    /// A data frame whose content is encrypted.
    Encrypted,
    /// Beacon, acknowledgement, command.
    Other,
}

/// Frame control: frame type in bits 0 to 2, then security, pending, acknowledgement request, PAN ID compression, reserved, sequence number
/// suppression, information elements, destination mode (2 bits), version (2 bits), source mode (2 bits).
fn header(cursor: &mut Cursor<'_>) -> Result<Header, Short> {
    const DATA: u16 = 1;
    let control = u16::from_le_bytes(cursor.array()?);
    let (version, destination_mode, source_mode) = (control >> 12 & 3, control >> 10 & 3, control >> 14);
    if control & 7 != DATA || version == 3 || destination_mode == 1 || source_mode == 1 {
        return Ok(Header::Other);
    }
    let is_numbered = version < 2 || control & 0x0100 == 0;
    if is_numbered {
        cursor.u8()?;
    }
    let (destination_pan, source_pan) = pans(version, destination_mode, source_mode, control & 0x40 != 0);
    let pan = if destination_pan { u16::from_le_bytes(cursor.array()?) } else { 0xffff };
    let destination = address(cursor, destination_mode, pan)?;
    let pan = if source_pan { u16::from_le_bytes(cursor.array()?) } else { pan };
    let source = address(cursor, source_mode, pan)?;
    let mic_bytes = match control & 8 {
        0 => 0,
        _ => match security(cursor)? {
            Some(mic_bytes) => mic_bytes,
            None => return Ok(Header::Encrypted),
        },
    };
    if version == 2 && control & 0x0200 != 0 {
        information_elements(cursor)?;
    }
    Ok(Header::Data { addresses: LinkAddresses { source, destination }, mic_bytes, is_numbered })
}

/// Which PAN identifiers are there (2015, table 7-2; before, the source's is left out with compression).
const fn pans(version: u16, destination_mode: u16, source_mode: u16, is_compressed: bool) -> (bool, bool) {
    match (version, destination_mode, source_mode) {
        (2, 0, 0) => (is_compressed, false),
        (2, _, 0) => (!is_compressed, false),
        (2, 0, _) => (false, !is_compressed),
        (2, 3, 3) => (!is_compressed, false),
        _ => (destination_mode != 0, source_mode != 0 && !is_compressed),
    }
}

fn address(cursor: &mut Cursor<'_>, mode: u16, pan: u16) -> Result<LinkAddress, Short> {
    Ok(match mode {
        2 => LinkAddress::Short(pan, u16::from_le_bytes(cursor.array()?)),
        3 => LinkAddress::Extended(u64::from_le_bytes(cursor.array()?).to_be_bytes()),
        _ => LinkAddress::Absent,
    })
}

/// Auxiliary security header (§9.4): the length of the integrity code, or none where the content is encrypted.
fn security(cursor: &mut Cursor<'_>) -> Result<Option<u32>, Short> {
    let control = cursor.u8()?;
    if control & 0x20 == 0 {
        cursor.u32()?;
    }
    cursor.take(match control >> 3 & 3 {
        0 => 0,
        1 => 1,
        2 => 5,
        _ => 9,
    })?;
    Ok(match control & 7 {
        0 => Some(0),
        1 => Some(4),
        2 => Some(8),
        3 => Some(16),
        _ => None,
    })
}

/// Header information elements up to a termination, and payload ones after the first kind of it (2015 §7.4).
fn information_elements(cursor: &mut Cursor<'_>) -> Result<(), Short> {
    while cursor.rest().len() >= 2 {
        let element = u16::from_le_bytes(cursor.array()?);
        cursor.take(usize::from(element & 0x7f))?;
        match element >> 7 & 0xff {
            0x7e => break,
            0x7f => return Ok(()),
            _ => {}
        }
    }
    while cursor.rest().len() >= 2 {
        let element = u16::from_le_bytes(cursor.array()?);
        cursor.take(usize::from(element & 0x7ff))?;
        if element >> 11 & 0xf == 0xf {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data frame of 2006 §7.2.2.2 with short addresses 1 and 2 in PAN abcd, sequence number 7, and IPv6 written out (RFC 4944 §5.1).
    const FRAME: [u8; 11] = [0x61, 0x98, 7, 0xcd, 0xab, 2, 0, 1, 0, 0x41, 0x60];

    #[test]
    fn a_frame_is_opened_as_it_is_on_the_air() {
        // 2006 §6.3: preamble of four zero bytes, delimiter a7, length of the frame with its check sequence
        let on_air = [&[0, 0, 0, 0, 0xa7, 13], &FRAME[..], &[1, 2], &[0xee]].concat();

        for (inside, offset) in [(open_phy(Layer::new(&on_air, 20)), 15), (open(Layer::new(&FRAME, 11)), 9)] {
            let Inside::LowPan(layer, addresses, Some(_)) = inside else { panic!("{inside:?}") };
            let expected = LinkAddresses { source: LinkAddress::Short(0xabcd, 1), destination: LinkAddress::Short(0xabcd, 2) };
            assert_eq!((Layer { captured: &[0x41, 0x60], wire_bytes: 2, offset }, expected), (layer, addresses));
        }
    }

    #[test]
    fn an_encrypted_frame_is_said_to_be_one() {
        // 2006 §7.2.1.1.2, §7.6.2.2: security enabled (bit 3); levels 2 (integrity alone) and 5 (encryption), frame counter, no key identifier
        let secured = |level| [&[0x69, 0x98], &FRAME[2..9], &[level, 1, 0, 0, 0, 0x41, 0x60, 1, 2, 3, 4, 5, 6, 7, 8]].concat();

        assert_eq!(Inside::Encrypted("wpan"), open(Layer::new(&secured(5), 24)));
        assert!(matches!(open(Layer::new(&secured(2), 24)), Inside::LowPan(layer, ..) if layer.captured == [0x41, 0x60]));
    }

    #[test]
    fn only_a_frame_with_a_sequence_number_can_be_known_again() {
        let digest = |bytes: &[u8]| match open(Layer::new(bytes, bytes.len() as u32)) {
            Inside::LowPan(_, _, digest) => digest,
            inside => panic!("{inside:?}"),
        };
        let mut next = FRAME;
        next[2] = 8;
        // 2015 §7.2.2: version 2 in bits 12 and 13 of frame control, sequence number suppression in bit 8
        let suppressed = [&[0x61, 0xa9], &FRAME[3..]].concat();

        assert_eq!(digest(&FRAME), digest(&FRAME));
        assert_ne!(digest(&FRAME), digest(&next));
        assert_eq!(None, digest(&suppressed));
    }
}
