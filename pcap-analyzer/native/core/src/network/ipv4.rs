//! IPv4 (RFC 791 §3.1).

use super::{Fragment, Ip, Refused};
use crate::layer::Layer;
use crate::packet::Address;

const LEAST_HEADER: u32 = 20;

/// Takes an IPv4 header with its options off. A total length of 0 is that of a frame handed over before segmentation (trap 41).
#[inline(always)]
pub(super) fn open(layer: Layer<'_>) -> Result<Ip<'_>, Refused> {
    let Some(header) = layer.first::<20>() else {
        return Err(if layer.is_cut() { Refused::Cut("ip") } else { Refused::Malformed("ip") });
    };
    let &[first, _, t0, t1, i0, i1, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = header;
    let header_bytes = u32::from(first & 0xf) * 4;
    let total = u32::from(u16::from_be_bytes([t0, t1]));
    let claimed = if total == 0 { layer.wire_bytes } else { total };
    if header_bytes < LEAST_HEADER || claimed < header_bytes || layer.wire_bytes < header_bytes {
        return Err(Refused::Malformed("ip"));
    }
    let packet = layer.cap(claimed);
    let identification = u16::from_be_bytes([i0, i1]);
    let flags = u16::from_be_bytes([f0, f1]);
    let (offset, more) = (u32::from(flags & 0x1fff) * 8, flags & 0x2000 != 0);
    Ok(Ip {
        source: Address::V4([s0, s1, s2, s3]),
        destination: Address::V4([d0, d1, d2, d3]),
        protocol,
        identification: Some(identification),
        header_bytes,
        padding_bytes: layer.wire_bytes - packet.wire_bytes,
        rest: packet.strip(header_bytes as usize),
        fragment: (more || offset > 0).then_some(Fragment { identification: u32::from(identification), offset, more }),
        claimed_bytes: (claimed > layer.wire_bytes).then_some(claimed),
    })
}
