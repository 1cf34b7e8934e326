//! IPv6 (RFC 8200 §3) with its extension headers (§4) and the authentication header (RFC 4302).

use super::{Fragment, Ip, Refused, AUTHENTICATION};
use crate::layer::Layer;
use crate::packet::Address;

const HEADER: u32 = 40;

/// Extension headers taken off.
pub(super) struct Chain<'a> {
    pub(super) protocol: u8,
    pub(super) header_bytes: u32,
    pub(super) rest: Layer<'a>,
    pub(super) fragment: Option<Fragment>,
}

/// Takes an IPv6 header with its extension headers off, up to and with a fragment header. A payload length of 0 is that of a jumbogram (RFC 2675) or
/// of a frame handed over before segmentation, unless nothing follows.
pub(super) fn open(layer: Layer<'_>) -> Result<Ip<'_>, Refused> {
    let Some(header) = layer.first::<40>() else {
        return Err(if layer.is_cut() { Refused::Cut("ipv6") } else { Refused::Malformed("ipv6") });
    };
    let (&[_, _, _, _, l0, l1, next, _], addresses) = header.split_first_chunk().ok_or(Refused::Malformed("ipv6"))?;
    let (source, destination) = addresses.split_first_chunk::<16>().ok_or(Refused::Malformed("ipv6"))?;
    let destination: &[u8; 16] = destination.first_chunk().ok_or(Refused::Malformed("ipv6"))?;
    let length = u32::from(u16::from_be_bytes([l0, l1]));
    let claimed = if length == 0 && next != NO_NEXT_HEADER { layer.wire_bytes } else { HEADER + length };
    let packet = layer.cap(claimed);
    let chain = extensions(next, packet.strip(HEADER as usize))?;
    Ok(Ip {
        source: Address::V6(*source),
        destination: Address::V6(*destination),
        protocol: chain.protocol,
        identification: None,
        header_bytes: HEADER + chain.header_bytes,
        padding_bytes: layer.wire_bytes - packet.wire_bytes,
        rest: chain.rest,
        fragment: chain.fragment,
        claimed_bytes: (claimed > layer.wire_bytes).then_some(claimed),
    })
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const NO_NEXT_HEADER: u8 = 59;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;

/// Takes extension headers off, as many as there are. Each is at least eight bytes, so this ends.
pub(super) fn extensions(mut protocol: u8, mut layer: Layer<'_>) -> Result<Chain<'_>, Refused> {
    let mut header_bytes = 0;
    loop {
        let length = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 => |units: u8| (u32::from(units) + 1) * 8,
            AUTHENTICATION => |units: u8| (u32::from(units) + 2) * 4,
            FRAGMENT => |_| 8,
            _ => return Ok(Chain { protocol, header_bytes, rest: layer, fragment: None }),
        };
        let Some(&[next, units, o0, o1, i0, i1, i2, i3]) = layer.first() else {
            return Err(if layer.is_cut() { Refused::Cut("ipv6") } else { Refused::Malformed("ipv6") });
        };
        let length = length(units);
        if length > layer.wire_bytes {
            return Err(Refused::Malformed("ipv6"));
        }
        header_bytes += length;
        let is_fragment = protocol == FRAGMENT;
        (protocol, layer) = (next, layer.strip(length as usize));
        let place = u16::from_be_bytes([o0, o1]);
        if is_fragment && place & 0xfff9 != 0 {
            let identification = u32::from_be_bytes([i0, i1, i2, i3]);
            let fragment = Fragment { identification, offset: u32::from(place & 0xfff8), more: place & 1 == 1 };
            return Ok(Chain { protocol, header_bytes, rest: layer, fragment: Some(fragment) });
        }
    }
}
