//! BSD loopback (LINKTYPE_NULL, host byte order, and LINKTYPE_LOOP, network byte order): four bytes of address family.

use super::Inside;
use crate::layer::Layer;

/// Takes the address family off, whichever byte order it has. IPv6 is 10 on Linux, 24 on NetBSD and OpenBSD, 28 on FreeBSD, 30 on macOS, 23 on Windows.
#[inline]
pub(super) fn open(layer: Layer<'_>) -> Inside<'_> {
    let Some(family) = layer.first::<4>() else { return Inside::Cut("null") };
    match u32::from_be_bytes(*family).min(u32::from_le_bytes(*family)) {
        2 | 10 | 23 | 24 | 28 | 30 => Inside::Ip(layer.strip(4)),
        0x0800 | 0x86dd => Inside::Ip(layer.strip(4)),
        _ => Inside::Other("null"),
    }
}
