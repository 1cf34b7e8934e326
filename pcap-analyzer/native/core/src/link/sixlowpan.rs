//! 6LoWPAN: IPv6 over IEEE 802.15.4 (RFC 4944) with header compression (RFC 6282, and HC1 of RFC 4944 §10). Compressed headers are written out as
//! the IPv6 and UDP headers that they stand for; the account says how much longer that made them. Routing headers (RFC 8138) are taken off and not
//! written out: their bytes are IP's. Recoverable fragments (RFC 8931) are not put together.

use super::ieee802154::{LinkAddress, LinkAddresses};
use crate::bytes::{Cursor, Short};
use crate::layer::Layer;

/// Whether a first byte announces 6LoWPAN (RFC 4944 §5.1, RFC 6282 §2, RFC 8025 §5, RFC 8931 §5).
#[must_use]
pub(super) const fn is_dispatch(first: u8) -> bool {
    matches!(first, IPV6 | HC1 | BROADCAST | PAGE_1 | 0x60..=0x7f | 0x80..=0xbf | 0xc0..=0xc7 | 0xe0..=0xeb)
}

const IPV6: u8 = 0x41;
const HC1: u8 = 0x42;
const BROADCAST: u8 = 0x50;
const PAGE_1: u8 = 0xf1;
/// IPv6 headers within IPv6 headers that are written out.
const DEEPEST: usize = 4;

/// What a frame's 6LoWPAN headers tell.
#[derive(Debug)]
pub enum Adapted<'a> {
    /// A whole IPv6 packet.
    Packet(Expanded<'a>),
    /// The first fragment of a datagram, with its headers.
    First(Tag, Expanded<'a>),
    /// A later fragment: where it begins in the uncompressed datagram, header bytes, and its data.
    Later(Tag, u32, u32, Layer<'a>),
    /// Dispatch or encoding that is not decoded, or cut off.
    Other,
}

/// Which datagram a fragment belongs to (RFC 4944 §5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// Sender and receiver: of the mesh, where there is one, or of the frame.
    pub addresses: LinkAddresses,
    /// Length of the uncompressed datagram in bytes.
    pub size: u16,
    /// Datagram tag.
    pub tag: u16,
}

/// Headers written out.
#[derive(Debug)]
pub struct Expanded<'a> {
    /// Uncompressed headers.
    pub headers: Vec<u8>,
    /// Bytes of all 6LoWPAN headers in the frame less the bytes of the IPv6 headers that were written for them; negative as a rule.
    pub ip_surplus: i64,
    /// The same of the UDP header.
    pub transport_surplus: i64,
    /// An address was made with a context that the capture does not tell.
    pub is_context_unknown: bool,
    /// What follows.
    pub rest: Layer<'a>,
}

/// Reads the headers of one frame: mesh, broadcast, fragment, then the IPv6 header.
#[must_use]
pub fn open(layer: Layer<'_>, addresses: LinkAddresses) -> Adapted<'_> {
    adapt(layer, addresses).unwrap_or(Adapted::Other)
}

fn adapt(layer: Layer<'_>, mut addresses: LinkAddresses) -> Result<Adapted<'_>, Short> {
    let mut cursor = Cursor::new(layer.captured);
    if cursor.peek().is_some_and(|first| first & 0xc0 == 0x80) {
        addresses = mesh(&mut cursor)?;
    }
    if cursor.peek() == Some(BROADCAST) {
        cursor.u16()?;
    }
    let first = cursor.peek().unwrap_or(0);
    match first & 0xf8 {
        0xc0 => {
            let tag = Tag { addresses, size: cursor.u16()? & 0x7ff, tag: cursor.u16()? };
            let expanded = expand(layer, cursor, addresses, Some(tag.size))?;
            Ok(expanded.map_or(Adapted::Other, |expanded| Adapted::First(tag, expanded)))
        }
        0xe0 => {
            let tag = Tag { addresses, size: cursor.u16()? & 0x7ff, tag: cursor.u16()? };
            let offset = u32::from(cursor.u8()?) * 8;
            Ok(Adapted::Later(tag, offset, cursor.offset() as u32, layer.strip(cursor.offset())))
        }
        _ => Ok(expand(layer, cursor, addresses, None)?.map_or(Adapted::Other, Adapted::Packet)),
    }
}

/// Mesh addressing header (RFC 4944 §5.2).
fn mesh(cursor: &mut Cursor<'_>) -> Result<LinkAddresses, Short> {
    let first = cursor.u8()?;
    if first & 0x0f == 0x0f {
        cursor.u8()?;
    }
    let mut address =
        |is_short: bool| Ok(if is_short { LinkAddress::Short(0xffff, cursor.u16()?) } else { LinkAddress::Extended(cursor.array()?) });
    Ok(LinkAddresses { source: address(first & 0x20 != 0)?, destination: address(first & 0x10 != 0)? })
}

/// Writes headers out, as their fields are read.
struct Writer {
    bytes: Vec<u8>,
    /// Where IPv6 headers begin whose length is not known yet.
    packets: Vec<usize>,
    /// Where the next header's number belongs.
    next_header: usize,
    udp: Option<Udp>,
    is_context_unknown: bool,
}

/// Where a written-out UDP header begins, and how long it was compressed.
struct Udp {
    at: usize,
    compressed: usize,
}

/// Writes the IPv6 header and what is compressed behind it out; none where the encoding is not decoded.
fn expand<'a>(
    layer: Layer<'a>,
    mut cursor: Cursor<'a>,
    addresses: LinkAddresses,
    datagram_bytes: Option<u16>,
) -> Result<Option<Expanded<'a>>, Short> {
    let is_passed = pass_routing_headers(&mut cursor)?;
    let mut writer = Writer { bytes: Vec::with_capacity(96), packets: Vec::new(), next_header: 0, udp: None, is_context_unknown: false };
    let is_decoded = match cursor.peek().filter(|_| is_passed) {
        Some(IPV6) => cursor.u8().map(|_| true)?,
        Some(HC1) => writer.hc1(&mut cursor, addresses)?,
        Some(0x60..=0x7f) => writer.iphc(&mut cursor, addresses)?,
        _ => false,
    };
    if !is_decoded {
        return Ok(None);
    }
    let rest = layer.strip(cursor.offset());
    let written = writer.bytes.len();
    let total = datagram_bytes.map_or(written + rest.wire_bytes as usize, usize::from);
    writer.lengths(total);
    let transport_surplus = writer.udp.map_or(0, |udp| udp.compressed as i64 - 8);
    Ok(Some(Expanded {
        ip_surplus: cursor.offset() as i64 - written as i64 - transport_surplus,
        transport_surplus,
        headers: writer.bytes,
        is_context_unknown: writer.is_context_unknown,
        rest,
    }))
}

/// Takes the routing headers of page 1 off (RFC 8138 §4): elective ones tell their length, critical ones by their type. Returns whether all are known.
fn pass_routing_headers(cursor: &mut Cursor<'_>) -> Result<bool, Short> {
    if cursor.peek() != Some(PAGE_1) {
        return Ok(true);
    }
    cursor.u8()?;
    while let Some(0x80..=0xbf) = cursor.peek() {
        let [first, kind] = cursor.array()?;
        let is_elective = first & 0x20 != 0;
        let length = match kind {
            _ if is_elective => usize::from(first & 0x1f),
            // §5.1, source routing header: Size + 1 addresses of 1, 2, 4, 8 or 16 bytes
            0..=4 => (usize::from(first & 0x1f) + 1) << kind,
            // §6.1, RPL packet information: I leaves the instance out, K shortens the rank
            5 => usize::from(first & 2 == 0) + if first & 1 == 0 { 2 } else { 1 },
            _ => return Ok(false),
        };
        cursor.take(length)?;
    }
    Ok(true)
}

/// What a next-header compression byte (RFC 6282 §4) was read as.
enum Next {
    Compressed,
    Done,
    Unknown,
}

impl Writer {
    /// IPHC (RFC 6282 §3.1): 011, traffic class and flow, next header, hop limit | context, source, destination.
    fn iphc(&mut self, cursor: &mut Cursor<'_>, addresses: LinkAddresses) -> Result<bool, Short> {
        let [first, second] = cursor.array()?;
        self.begin_packet();
        let contexts = if second & 0x80 != 0 { cursor.u8()? } else { 0 };
        self.class_and_flow(cursor, first >> 3 & 3)?;
        self.bytes.extend([0, 0]);
        let is_next_compressed = first & 4 != 0;
        let next = if is_next_compressed { 0 } else { cursor.u8()? };
        let hop_limit = match first & 3 {
            0 => cursor.u8()?,
            1 => 1,
            2 => 64,
            _ => 255,
        };
        self.bytes.extend([next, hop_limit]);
        let source = self.unicast(cursor, second >> 4 & 7, contexts >> 4, addresses.source)?;
        self.bytes.extend(source);
        let destination = match second & 0xf {
            mode @ 0..8 => self.unicast(cursor, mode, contexts & 0xf, addresses.destination)?,
            mode => match self.multicast(cursor, mode & 7)? {
                Some(address) => address,
                None => return Ok(false),
            },
        };
        self.bytes.extend(destination);
        let mut next = if is_next_compressed { Next::Compressed } else { Next::Done };
        while let Next::Compressed = next {
            next = self.next_header(cursor)?;
        }
        Ok(matches!(next, Next::Done))
    }

    /// An IPv6 header begins here; the number of what follows it is at its seventh byte.
    fn begin_packet(&mut self) {
        self.packets.push(self.bytes.len());
        self.next_header = self.bytes.len() + 6;
    }

    /// A packet within the packet (§4.2). What its addresses leave out is in the header around it.
    fn packet_within(&mut self, cursor: &mut Cursor<'_>) -> Result<Next, Short> {
        const IPV6_IN_IPV6: u8 = 41;
        let around = self.packets.last().and_then(|&at| self.bytes.get(at..)).and_then(|header| header.first_chunk::<40>());
        let Some([.., s0, s1, s2, s3, s4, s5, s6, s7, _, _, _, _, _, _, _, _, d0, d1, d2, d3, d4, d5, d6, d7]) = around else {
            return Ok(Next::Unknown);
        };
        let source = LinkAddress::Identifier([*s0, *s1, *s2, *s3, *s4, *s5, *s6, *s7]);
        let destination = LinkAddress::Identifier([*d0, *d1, *d2, *d3, *d4, *d5, *d6, *d7]);
        if self.packets.len() >= DEEPEST || !matches!(cursor.peek(), Some(0x60..=0x7f)) {
            return Ok(Next::Unknown);
        }
        self.follow(IPV6_IN_IPV6);
        Ok(if self.iphc(cursor, LinkAddresses { source, destination })? { Next::Done } else { Next::Unknown })
    }

    /// Version, traffic class and flow label (§3.2.1). In the frame ECN stands before DSCP.
    fn class_and_flow(&mut self, cursor: &mut Cursor<'_>, mode: u8) -> Result<(), Short> {
        let (class, flow) = match mode {
            0 => (cursor.u8()?.rotate_left(2), cursor.u24()? & 0x000f_ffff),
            1 => {
                let value = cursor.u24()?;
                ((value >> 22) as u8, value & 0x000f_ffff)
            }
            2 => (cursor.u8()?.rotate_left(2), 0),
            _ => (0, 0),
        };
        self.bytes.extend((6 << 28 | u32::from(class) << 20 | flow).to_be_bytes());
        Ok(())
    }

    /// A unicast address by SAC and SAM, or DAC and DAM (§3.1.1). The prefix of a context is not in the frame: it stays zero.
    fn unicast(&mut self, cursor: &mut Cursor<'_>, mode: u8, _context: u8, link: LinkAddress) -> Result<[u8; 16], Short> {
        let is_stateful = mode & 4 != 0;
        if mode == 0 {
            return cursor.array();
        }
        if mode == 4 {
            return Ok([0; 16]);
        }
        self.is_context_unknown |= is_stateful;
        let identifier = match mode & 3 {
            1 => cursor.array()?,
            2 => short_identifier(0, cursor.u16()?),
            _ => identifier(link),
        };
        Ok(join(if is_stateful { [0; 8] } else { LINK_LOCAL }, identifier))
    }

    /// A multicast address by DAC and DAM (§3.1.1); none for the reserved ones.
    fn multicast(&mut self, cursor: &mut Cursor<'_>, mode: u8) -> Result<Option<[u8; 16]>, Short> {
        let mut address = [0; 16];
        let tail: usize = match mode {
            0 => return cursor.array().map(Some),
            1 => 5,
            2 => 3,
            3 => 1,
            4 => 0,
            _ => return Ok(None),
        };
        let scope = if mode == 3 { 2 } else { cursor.u8()? };
        for (slot, octet) in address.iter_mut().zip([0xff, scope]) {
            *slot = octet;
        }
        if mode == 4 {
            self.is_context_unknown = true;
            let [interface, g0, g1, g2, g3] = cursor.array()?;
            return Ok(Some([0xff, scope, interface, 0, 0, 0, 0, 0, 0, 0, 0, 0, g0, g1, g2, g3]));
        }
        for (slot, octet) in address.iter_mut().skip(16 - tail).zip(cursor.take(tail)?) {
            *slot = *octet;
        }
        Ok(Some(address))
    }

    /// One compressed next header (§4): UDP, an extension header behind which there may be another one, or an IPv6 header.
    fn next_header(&mut self, cursor: &mut Cursor<'_>) -> Result<Next, Short> {
        let encoding = cursor.u8()?;
        match encoding {
            0xf0..=0xf7 => self.udp(cursor, encoding).map(|()| Next::Done),
            0xe0..=0xe9 => self.extension(cursor, encoding),
            0xee => self.packet_within(cursor),
            _ => Ok(Next::Unknown),
        }
    }

    /// Extension header compression (§4.2): 1110, which header, whether the next one is compressed too. Padding to eight bytes is written anew.
    fn extension(&mut self, cursor: &mut Cursor<'_>, encoding: u8) -> Result<Next, Short> {
        const NUMBERS: [u8; 5] = [0, 43, 44, 60, 135];
        const FRAGMENT: u8 = 44;
        let Some(&number) = NUMBERS.get(usize::from(encoding >> 1 & 7)) else { return Ok(Next::Unknown) };
        let is_next_compressed = encoding & 1 == 1;
        let next = if is_next_compressed { 0 } else { cursor.u8()? };
        let length = usize::from(cursor.u8()?);
        let data = cursor.take(if number == FRAGMENT { 6 } else { length })?;
        self.follow(number);
        let padded = (data.len() + 2).next_multiple_of(8);
        self.bytes.extend([next, (padded / 8 - 1) as u8]);
        self.bytes.extend(data);
        match padded - data.len() - 2 {
            0 => {}
            1 => self.bytes.push(0),
            missing => {
                self.bytes.extend([1, (missing - 2) as u8]);
                self.bytes.resize(self.bytes.len() + missing - 2, 0);
            }
        }
        Ok(if is_next_compressed { Next::Compressed } else { Next::Done })
    }

    /// UDP header compression (§4.3): 11110, checksum left out, ports.
    fn udp(&mut self, cursor: &mut Cursor<'_>, encoding: u8) -> Result<(), Short> {
        let begin = cursor.offset() - 1;
        let (source, destination) = match encoding & 3 {
            0 => (cursor.u16()?, cursor.u16()?),
            1 => (cursor.u16()?, 0xf000 | u16::from(cursor.u8()?)),
            2 => (0xf000 | u16::from(cursor.u8()?), cursor.u16()?),
            _ => nibbles(cursor.u8()?),
        };
        let checksum = if encoding & 4 == 0 { cursor.u16()? } else { 0 };
        self.write_udp(source, destination, checksum, cursor.offset() - begin);
        Ok(())
    }

    fn write_udp(&mut self, source: u16, destination: u16, checksum: u16, compressed: usize) {
        const UDP: u8 = 17;
        self.follow(UDP);
        self.udp = Some(Udp { at: self.bytes.len(), compressed });
        for field in [source, destination, 0, checksum] {
            self.bytes.extend(field.to_be_bytes());
        }
    }

    /// HC1 (RFC 4944 §10.1) with HC_UDP (§10.2): where traffic class and flow label are zero, as they were in use.
    fn hc1(&mut self, cursor: &mut Cursor<'_>, addresses: LinkAddresses) -> Result<bool, Short> {
        let [_, encoding] = cursor.array()?;
        let protocol = encoding >> 1 & 3;
        let has_hc2 = encoding & 1 == 1;
        if encoding & 8 == 0 || (has_hc2 && protocol != 1) {
            return Ok(false);
        }
        let hc_udp = if has_hc2 { Some(cursor.u8()?) } else { None };
        let hop_limit = cursor.u8()?;
        let source = hc1_address(cursor, encoding >> 6, addresses.source)?;
        let destination = hc1_address(cursor, encoding >> 4, addresses.destination)?;
        let next = match protocol {
            0 => cursor.u8()?,
            1 => 17,
            2 => 58,
            _ => 6,
        };
        self.begin_packet();
        self.bytes.extend([0x60, 0, 0, 0, 0, 0, next, hop_limit]);
        self.bytes.extend(source);
        self.bytes.extend(destination);
        if let Some(hc_udp) = hc_udp {
            self.hc_udp(cursor, hc_udp)?;
        }
        Ok(true)
    }

    /// Ports of four bits are packed; the length may be left out, the checksum never is.
    fn hc_udp(&mut self, cursor: &mut Cursor<'_>, encoding: u8) -> Result<(), Short> {
        let begin = cursor.offset();
        let (source, destination) = match encoding >> 6 {
            3 => nibbles(cursor.u8()?),
            0 => (cursor.u16()?, cursor.u16()?),
            // One of four bits, one of sixteen: not on byte boundaries, and not seen in use.
            _ => return Err(Short { offset: begin, needed: begin + 3 }),
        };
        if encoding & 0x20 == 0 {
            cursor.u16()?;
        }
        let checksum = cursor.u16()?;
        // The encoding byte itself stands before the hop limit.
        self.write_udp(source, destination, checksum, cursor.offset() - begin + 1);
        Ok(())
    }

    /// Puts a header's number where the header before it announces it.
    fn follow(&mut self, number: u8) {
        if let Some(slot) = self.bytes.get_mut(self.next_header) {
            *slot = number;
        }
        self.next_header = self.bytes.len();
    }

    /// Fills the length fields of the written headers, of a datagram of `total` bytes.
    fn lengths(&mut self, total: usize) {
        const HEADER: usize = 40;
        for at in std::mem::take(&mut self.packets) {
            self.put(at + 4, total.saturating_sub(at + HEADER));
        }
        if let Some(at) = self.udp.as_ref().map(|udp| udp.at) {
            self.put(at + 4, total.saturating_sub(at));
        }
    }

    fn put(&mut self, at: usize, length: usize) {
        let octets = u16::try_from(length).unwrap_or(0).to_be_bytes();
        for (slot, octet) in self.bytes.iter_mut().skip(at).zip(octets) {
            *slot = octet;
        }
    }
}

const LINK_LOCAL: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];

fn join(prefix: [u8; 8], identifier: [u8; 8]) -> [u8; 16] {
    (u128::from(u64::from_be_bytes(prefix)) << 64 | u128::from(u64::from_be_bytes(identifier))).to_be_bytes()
}

/// Ports 61616 to 61631 in four bits each.
const fn nibbles(packed: u8) -> (u16, u16) {
    (0xf0b0 | (packed >> 4) as u16, 0xf0b0 | (packed & 0xf) as u16)
}

/// The interface identifier of a link address (RFC 6282 §3.2.2).
fn identifier(link: LinkAddress) -> [u8; 8] {
    match link {
        LinkAddress::Absent => [0; 8],
        LinkAddress::Short(_, short) => short_identifier(0, short),
        LinkAddress::Identifier(octets) => octets,
        LinkAddress::Extended([first, rest @ ..]) => {
            let [a, b, c, d, e, f, g] = rest;
            [first ^ 2, a, b, c, d, e, f, g]
        }
    }
}

const fn short_identifier(pan: u16, short: u16) -> [u8; 8] {
    LinkAddress::Short(pan, short).bytes()
}

/// An address of HC1: prefix and identifier each in the frame or link-local and by link address, a short one with its PAN (RFC 4944 §6).
fn hc1_address(cursor: &mut Cursor<'_>, encoding: u8, link: LinkAddress) -> Result<[u8; 16], Short> {
    let prefix = if encoding & 2 == 0 { cursor.array()? } else { LINK_LOCAL };
    let identifier = match (encoding & 1, link) {
        (0, _) => cursor.array()?,
        (_, LinkAddress::Short(pan, short)) => short_identifier(pan & !0x0200, short),
        _ => identifier(link),
    };
    Ok(join(prefix, identifier))
}
