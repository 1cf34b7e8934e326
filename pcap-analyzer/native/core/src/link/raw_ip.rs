//! Raw IP (LINKTYPE_RAW, IPV4, IPV6 and the numbers of DLT_RAW that slipped into files): no link header at all.

use super::Inside;
use crate::layer::Layer;

/// The frame is the packet.
#[inline]
pub(super) fn open(layer: Layer<'_>) -> Inside<'_> {
    match layer.u8(0).map(|first| first >> 4) {
        Some(4 | 6) => Inside::Ip(layer),
        Some(_) => Inside::Other("raw"),
        None => Inside::Cut("raw"),
    }
}
