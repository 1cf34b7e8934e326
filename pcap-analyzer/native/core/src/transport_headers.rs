//! UDP (RFC 768) and TCP (RFC 9293 §3.1) headers: ports, lengths and what reassembly needs.

use crate::layer::Layer;
use crate::packet::{TcpHeader, Transport};

/// A transport header taken off.
#[derive(Debug, Clone, Copy)]
pub struct Opened<'a> {
    /// Sender's port.
    pub source_port: u16,
    /// Receiver's port.
    pub destination_port: u16,
    /// Which it is.
    pub transport: Transport,
    /// Header with options in bytes.
    pub header_bytes: u32,
    /// What stands behind a UDP datagram in its IP packet, in bytes.
    pub padding_bytes: u32,
    /// The payload.
    pub payload: Layer<'a>,
    /// The length that the header claims, where it is more than the packet holds.
    pub claimed_bytes: Option<u32>,
}

/// Why a transport header was not taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Cut by the snap length before ports (TCP: before the control bits).
    Cut,
    /// Its length field contradicts the packet.
    Malformed,
}

const UDP_HEADER: u32 = 8;

/// Takes a UDP header off. A length of 0 is that of a jumbogram (RFC 2675 §4) or of a frame handed over before segmentation.
///
/// # Errors
/// [`Refused`].
#[inline(always)]
pub fn udp(layer: Layer<'_>) -> Result<Opened<'_>, Refused> {
    if layer.wire_bytes < UDP_HEADER {
        return Err(Refused::Malformed);
    }
    let (Some(source_port), Some(destination_port)) = (layer.u16(0), layer.u16(2)) else { return Err(Refused::Cut) };
    let claimed = match layer.u16(4) {
        None | Some(0) => layer.wire_bytes,
        Some(1..=7) => return Err(Refused::Malformed),
        Some(length) => u32::from(length),
    };
    let datagram = layer.cap(claimed);
    Ok(Opened {
        source_port,
        destination_port,
        transport: Transport::Udp,
        header_bytes: UDP_HEADER,
        padding_bytes: layer.wire_bytes - datagram.wire_bytes,
        payload: datagram.strip(UDP_HEADER as usize),
        claimed_bytes: (claimed > layer.wire_bytes).then_some(claimed),
    })
}

const TCP_LEAST_HEADER: u32 = 20;

/// Takes a TCP header off.
///
/// # Errors
/// [`Refused`].
#[inline(always)]
pub fn tcp(layer: Layer<'_>) -> Result<Opened<'_>, Refused> {
    let Some(&[p0, p1, p2, p3, s0, s1, s2, s3, a0, a1, a2, a3, offset, flags]) = layer.first() else {
        return Err(if layer.wire_bytes < TCP_LEAST_HEADER { Refused::Malformed } else { Refused::Cut });
    };
    let header_bytes = u32::from(offset >> 4) * 4;
    if header_bytes < TCP_LEAST_HEADER || header_bytes > layer.wire_bytes {
        return Err(Refused::Malformed);
    }
    let header = TcpHeader {
        sequence: u32::from_be_bytes([s0, s1, s2, s3]),
        acknowledgment: u32::from_be_bytes([a0, a1, a2, a3]),
        flags,
        window: layer.u16(14).unwrap_or(0),
        maximum_segment_bytes: if flags & TcpHeader::SYN == 0 { None } else { maximum_segment(layer.cap(header_bytes).captured) },
    };
    Ok(Opened {
        source_port: u16::from_be_bytes([p0, p1]),
        destination_port: u16::from_be_bytes([p2, p3]),
        transport: Transport::Tcp(header),
        header_bytes,
        padding_bytes: 0,
        payload: layer.strip(header_bytes as usize),
        claimed_bytes: None,
    })
}

/// The maximum segment size option (RFC 9293 §3.2) of a header with options.
fn maximum_segment(header: &[u8]) -> Option<u16> {
    let mut options = header.get(TCP_LEAST_HEADER as usize..)?;
    loop {
        options = match options {
            [2, 4, high, low, ..] => return Some(u16::from_be_bytes([*high, *low])),
            [1, rest @ ..] => rest,
            [0, ..] => return None,
            [_, length, ..] if *length >= 2 => options.get(usize::from(*length)..)?,
            _ => return None,
        };
    }
}
