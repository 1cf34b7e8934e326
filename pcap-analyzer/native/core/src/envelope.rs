//! Opens a frame down to its UDP or TCP payload: link, network and transport headers in order. What every frame goes through is always inlined, here and
//! in the headers' own files: what one layer finds the next one takes apart at once, which then costs no copy.

use crate::capture::Frame;
use crate::layer::Layer;
use crate::link::ieee802154::LinkAddresses;
use crate::link::sent_again::SentLately;
use crate::link::sixlowpan::{self, Adapted, Expanded, Tag};
use crate::link::{self, Inside, LinkType};
use crate::network::fragments::{Arrival, Fragments, Key, Unfinished, Verdict};
use crate::network::{self, icmp, Ip, AUTHENTICATION, ICMP, ICMPV6, TCP, UDP};
use crate::note::{Notes, CONTEXT_UNKNOWN, HUGE_SEGMENT, LENGTH_LIES, LINK_ENCRYPTED, LINK_TYPE, SNAP_LENGTH};
use crate::packet::{Account, Address, Endpoint, OtherFrame, Packet, Refusal};
use crate::span::Origin;
use crate::transport_headers as transport;
use std::num::NonZeroU16;

/// What a frame turned out to hold.
#[derive(Debug)]
pub enum Opened<'a> {
    /// A whole datagram or segment, with the captured part of its payload.
    Packet(&'a [u8]),
    /// A fragment that is kept until its datagram is whole; its bytes will be in that packet's.
    Held,
    /// Something below or beside UDP and TCP.
    Other(OtherFrame),
}

/// Opens frames; remembers fragments between them.
#[derive(Debug, Default)]
pub struct Opener {
    /// The link type of the frame before, which is that of the next one too as a rule.
    link_type: Option<&'static LinkType>,
    fragments: Fragments,
    /// Frames of links that send them again.
    lately: SentLately,
    /// The datagram that was reassembled last.
    reassembled: Vec<u8>,
}

/// Envelopes within envelopes (tunnels, fragments) that are opened.
const DEEPEST: u8 = 8;
/// The most bytes of IP in an Ethernet frame, jumbo frames aside.
const ETHERNET_MTU: u32 = 1500;

/// The frame that is being opened.
struct Context<'n> {
    file: u16,
    number: u64,
    time_ns: i64,
    is_ethernet: bool,
    depth: u8,
    /// Whether the link layer sends it again.
    is_sent_again: bool,
    account: Account,
    refusal: Option<Refusal>,
    notes: &'n mut Notes,
    /// Where the packet is written.
    packet: &'n mut Packet,
}

/// Where a payload lies.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: usize,
    length: usize,
    /// In the reassembled datagram instead of the frame.
    is_reassembled: bool,
}

/// What a layer turned out to hold.
enum Found {
    Packet(Place),
    Held,
    Other(&'static str),
}

impl Opener {
    /// Opens one frame. Where that completes a datagram or segment, it is written to `packet`: in its place, since copies of what has just been written
    /// are what cost here.
    #[inline(always)]
    pub fn open<'a>(&'a mut self, frame: &Frame<'a>, notes: &mut Notes, packet: &mut Packet) -> Opened<'a> {
        let mut context = Context::new(frame, notes, packet);
        match self.link(frame, &mut context) {
            Found::Packet(place) => {
                let bytes = if place.is_reassembled { self.reassembled.as_slice() } else { frame.captured };
                Opened::Packet(bytes.get(place.offset..place.offset + place.length).unwrap_or(&[]))
            }
            Found::Held => Opened::Held,
            Found::Other(protocol) => Opened::Other(OtherFrame {
                protocol,
                frame_bytes: context.account.frame_bytes,
                frames: context.account.earlier.len() as u32 + 1,
                refuses: context.refusal,
            }),
        }
    }

    /// Frames whose datagrams never became whole, to be asked for at the end.
    pub fn unfinished(&mut self, notes: &mut Notes) -> Vec<Unfinished> {
        self.fragments.unfinished(notes)
    }

    #[inline(always)]
    fn link(&mut self, frame: &Frame<'_>, context: &mut Context<'_>) -> Found {
        let fcs_bytes = u32::from(frame.fcs_bytes);
        let layer = Layer::new(frame.captured, frame.frame_bytes).cap(frame.frame_bytes.saturating_sub(fcs_bytes));
        if layer.is_cut() {
            context.note_cut(frame);
        }
        let Some(link_type) = self.link_type(frame.link_type) else {
            context.notes.add(LINK_TYPE, None, frame.file, frame.number, || format!("LINKTYPE {}", frame.link_type));
            return Found::Other("frame");
        };
        context.is_ethernet = link_type.is_ethernet;
        match (link_type.open)(layer) {
            Inside::Ip(inside) => {
                context.account.link = i64::from(frame.frame_bytes) - i64::from(inside.wire_bytes);
                self.ip(inside, context)
            }
            Inside::LowPan(inside, addresses, digest) => {
                context.is_sent_again = digest.is_some_and(|digest| self.lately.has(digest, frame.time_ns));
                context.account.link = i64::from(frame.frame_bytes) - i64::from(inside.wire_bytes);
                self.low_pan(inside, addresses, context)
            }
            Inside::Encrypted(protocol) => {
                context.notes.add(LINK_ENCRYPTED, None, frame.file, frame.number, String::new);
                Found::Other(protocol)
            }
            Inside::Other(protocol) | Inside::Cut(protocol) => Found::Other(protocol),
        }
    }

    /// IPv6 in 6LoWPAN's form: the headers are written out, and what that made longer is taken off their bytes again.
    fn low_pan(&mut self, layer: Layer<'_>, addresses: LinkAddresses, context: &mut Context<'_>) -> Found {
        match sixlowpan::open(layer, addresses) {
            Adapted::Packet(expanded) => {
                let (bytes, wire_bytes) = context.write_out(&expanded);
                let found = self.ip(Layer::new(&bytes, wire_bytes), context);
                self.keep(found, bytes)
            }
            Adapted::First(tag, expanded) => {
                let (bytes, wire_bytes) = context.write_out(&expanded);
                self.low_pan_fragment(tag, 0, Layer::new(&bytes, wire_bytes), context)
            }
            Adapted::Later(tag, offset, header_bytes, data) => {
                context.account.ip += i64::from(header_bytes);
                self.low_pan_fragment(tag, offset, data, context)
            }
            Adapted::Other => Found::Other("6lowpan"),
        }
    }

    /// RFC 4944 §5.3: every fragment tells the datagram's length.
    fn low_pan_fragment(&mut self, tag: Tag, offset: u32, data: Layer<'_>, context: &mut Context<'_>) -> Found {
        let arrival = Arrival {
            key: Key::LowPan(tag.addresses.source.bytes(), tag.addresses.destination.bytes(), tag.tag, tag.size),
            offset,
            wire_bytes: data.wire_bytes,
            captured: data.captured,
            total: Some(tag.size.into()),
            protocol: IPV6,
            file: context.file,
            frame: context.number,
            time_ns: context.time_ns,
            is_sent_again: std::mem::take(&mut context.is_sent_again),
        };
        match self.fragments.add(&arrival, &mut context.account, context.notes) {
            Verdict::Held => Found::Held,
            Verdict::Refused => Found::Other("6lowpan"),
            Verdict::Whole(whole) => {
                let found = self.ip(Layer::new(&whole.bytes, whole.wire_bytes), context);
                self.keep(found, whole.bytes)
            }
        }
    }

    #[inline]
    fn link_type(&mut self, number: u16) -> Option<&'static LinkType> {
        if self.link_type.is_none_or(|known| known.number != number) {
            self.link_type = link::find(number);
        }
        self.link_type
    }

    /// An IP packet, and those within it.
    #[inline(always)]
    fn ip(&mut self, layer: Layer<'_>, context: &mut Context<'_>) -> Found {
        let opened = network::open(layer);
        let ip = match &opened {
            Ok(ip) => ip,
            Err(network::Refused::Cut(protocol) | network::Refused::Malformed(protocol)) => return Found::Other(protocol),
        };
        context.account.ip += i64::from(ip.header_bytes);
        context.account.padding += i64::from(ip.padding_bytes);
        if let Some(claimed) = ip.claimed_bytes {
            context.note_lie("IP", claimed, layer.wire_bytes);
        }
        if let Some(fragment) = ip.fragment {
            return self.fragment(ip, fragment, context);
        }
        self.upper(ip, context)
    }

    /// What an IP packet holds.
    #[inline(always)]
    fn upper(&mut self, ip: &Ip<'_>, context: &mut Context<'_>) -> Found {
        match ip.protocol {
            TCP => context.transport(&transport::tcp(ip.rest), "tcp", ip),
            UDP => context.transport(&transport::udp(ip.rest), "udp", ip),
            ICMP | ICMPV6 => {
                context.refusal = icmp::refusal(ip);
                Found::Other(network::protocol_name(ip.protocol))
            }
            AUTHENTICATION => self.behind_extensions(ip, context),
            _ => self.tunnel(ip, context),
        }
    }

    /// IP in IP (RFC 2003, 2473, 4213), GRE (RFC 2784, 2890) with IP, Ethernet or PPP (RFC 2637), and MPLS in either (RFC 4023): the outer headers are the
    /// inner packet's IP bytes.
    fn tunnel(&mut self, ip: &Ip<'_>, context: &mut Context<'_>) -> Found {
        let name = network::protocol_name(ip.protocol);
        context.depth += 1;
        if context.depth > DEEPEST {
            return Found::Other(name);
        }
        let inside = match ip.protocol {
            IPV4 | IPV6 => Inside::Ip(ip.rest),
            GRE => gre(ip.rest),
            MPLS => link::by_ethernet_type(MPLS_UNICAST, ip.rest),
            _ => Inside::Other(name),
        };
        match inside {
            Inside::Ip(inside) => {
                context.account.ip += i64::from(ip.rest.wire_bytes) - i64::from(inside.wire_bytes);
                self.ip(inside, context)
            }
            Inside::LowPan(..) => Found::Other(name),
            Inside::Encrypted(protocol) | Inside::Other(protocol) | Inside::Cut(protocol) => Found::Other(protocol),
        }
    }

    /// A fragment; with the last one missing, the datagram. Those of protocols that are not opened are not kept.
    fn fragment(&mut self, ip: &Ip<'_>, fragment: network::Fragment, context: &mut Context<'_>) -> Found {
        let is_v4 = matches!(ip.source, Address::V4(_));
        if is_v4 && !matches!(ip.protocol, TCP | UDP | IPV4 | IPV6 | GRE | AUTHENTICATION | MPLS) {
            return Found::Other(network::protocol_name(ip.protocol));
        }
        let identification = fragment.identification;
        let arrival = Arrival {
            key: if is_v4 {
                Key::V4(ip.source, ip.destination, ip.protocol, identification)
            } else {
                Key::V6(ip.source, ip.destination, identification)
            },
            offset: fragment.offset,
            wire_bytes: ip.rest.wire_bytes,
            captured: ip.rest.captured,
            total: (!fragment.more).then_some(fragment.offset + ip.rest.wire_bytes),
            protocol: ip.protocol,
            file: context.file,
            frame: context.number,
            time_ns: context.time_ns,
            is_sent_again: context.is_sent_again,
        };
        match self.fragments.add(&arrival, &mut context.account, context.notes) {
            Verdict::Held => Found::Held,
            Verdict::Refused => Found::Other(if is_v4 { "ip" } else { "ipv6" }),
            Verdict::Whole(whole) => {
                let layer = Layer::new(&whole.bytes, whole.wire_bytes);
                let found = self.datagram(Ip { protocol: whole.protocol, rest: layer, fragment: None, ..*ip }, context);
                self.keep(found, whole.bytes)
            }
        }
    }

    /// A reassembled datagram, in IPv6 with extension headers.
    fn datagram(&mut self, ip: Ip<'_>, context: &mut Context<'_>) -> Found {
        if matches!(ip.source, Address::V4(_)) {
            return self.upper(&ip, context);
        }
        self.behind_extensions(&ip, context)
    }

    /// What stands behind extension headers: those of a reassembled IPv6 datagram, an authentication header of IPv4 (RFC 4302).
    fn behind_extensions(&mut self, ip: &Ip<'_>, context: &mut Context<'_>) -> Found {
        match network::open_extensions(ip.protocol, ip.rest) {
            Ok((protocol, header_bytes, rest)) => {
                context.account.ip += i64::from(header_bytes);
                self.upper(&Ip { protocol, rest, ..*ip }, context)
            }
            Err(_) if ip.protocol == AUTHENTICATION => Found::Other(network::protocol_name(ip.protocol)),
            Err(network::Refused::Cut(protocol) | network::Refused::Malformed(protocol)) => Found::Other(protocol),
        }
    }

    /// Keeps a reassembled datagram for the payload that lies in it.
    fn keep(&mut self, found: Found, bytes: Vec<u8>) -> Found {
        match found {
            Found::Packet(place) if !place.is_reassembled => {
                self.reassembled = bytes;
                Found::Packet(Place { is_reassembled: true, ..place })
            }
            found => found,
        }
    }
}

const IPV4: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
/// MPLS in IP (RFC 4023 §3).
const MPLS: u8 = 137;
/// The Ethernet type of MPLS labels (RFC 3032 §5).
const MPLS_UNICAST: u16 = 0x8847;

/// Generic routing encapsulation: optional checksum, key, sequence number and, in version 1 (RFC 2637 §4.1), acknowledgment number by the flags of
/// the first two bytes.
fn gre(layer: Layer<'_>) -> Inside<'_> {
    let Some(&[flags, version, high, low]) = layer.first() else { return Inside::Cut("gre") };
    let fields = match version & 7 {
        0 => flags & 0xb0,
        1 => flags & 0x30 | version & 0x80,
        _ => return Inside::Other("gre"),
    };
    if flags & 0x40 != 0 {
        return Inside::Other("gre");
    }
    let inside = layer.strip(4 + fields.count_ones() as usize * 4);
    match u16::from_be_bytes([high, low]) {
        kind @ (0x0800 | 0x86dd | MPLS_UNICAST | 0x8848) => link::by_ethernet_type(kind, inside),
        0x6558 => by_link_type(1, inside),
        0x880b if inside.wire_bytes > 0 => by_link_type(9, inside),
        _ => Inside::Other("gre"),
    }
}

/// What a frame of another link layer holds, in a tunnel.
fn by_link_type(number: u16, layer: Layer<'_>) -> Inside<'_> {
    link::find(number).map_or(Inside::Other("gre"), |link_type| (link_type.open)(layer))
}

impl<'n> Context<'n> {
    #[inline(always)]
    fn new(frame: &Frame<'_>, notes: &'n mut Notes, packet: &'n mut Packet) -> Self {
        let account = Account { frame_bytes: u64::from(frame.frame_bytes), time_first_ns: frame.time_ns, ..Account::default() };
        let (file, number, time_ns) = (frame.file, frame.number, frame.time_ns);
        Self { file, number, time_ns, is_ethernet: false, depth: 0, is_sent_again: false, account, refusal: None, notes, packet }
    }

    #[inline(always)]
    fn transport(&mut self, opened: &Result<transport::Opened<'_>, transport::Refused>, name: &'static str, ip: &Ip<'_>) -> Found {
        let opened = match opened {
            Ok(opened) => opened,
            Err(transport::Refused::Cut) => return Found::Other(name),
            Err(transport::Refused::Malformed) => {
                self.notes.add(LENGTH_LIES, None, self.file, self.number, || format!("a {name} header contradicts its packet"));
                return Found::Other(name);
            }
        };
        if let Some(claimed) = opened.claimed_bytes {
            self.note_lie(name, claimed, ip.rest.wire_bytes);
        }
        let is_one_frame = self.account.earlier.is_empty(); // what IP fragmented is on the wire as captured
        if self.is_ethernet && is_one_frame && ip.protocol == TCP && ip.header_bytes + ip.rest.wire_bytes > ETHERNET_MTU {
            self.note_huge(ip);
        }
        self.account.transport += i64::from(opened.header_bytes);
        self.account.padding += i64::from(opened.padding_bytes);
        let Some(headers) = self.account.headers() else { return Found::Other(name) };
        let earlier = std::mem::take(&mut self.account.earlier);
        let packet = &mut *self.packet;
        packet.origin = Origin {
            frame: self.number,
            frame_first: earlier.first().copied().unwrap_or(self.number),
            file: self.file,
            ip_identification: ip.identification.and_then(NonZeroU16::new),
            time_ns: self.time_ns,
            time_first_ns: self.account.time_first_ns,
            headers,
            payload_bytes: opened.payload.wire_bytes,
        };
        packet.earlier_frames = if earlier.is_empty() { None } else { Some(earlier.into_boxed_slice()) };
        packet.source = Endpoint { address: ip.source, port: opened.source_port };
        packet.destination = Endpoint { address: ip.destination, port: opened.destination_port };
        packet.transport = opened.transport;
        packet.is_sent_again = self.is_sent_again;
        Found::Packet(Place { offset: opened.payload.offset, length: opened.payload.captured.len(), is_reassembled: false })
    }

    /// The bytes of a packet with its headers written out, and its length.
    fn write_out(&mut self, expanded: &Expanded<'_>) -> (Vec<u8>, u32) {
        self.account.ip += expanded.ip_surplus;
        self.account.transport += expanded.transport_surplus;
        if expanded.is_context_unknown {
            self.notes.add(CONTEXT_UNKNOWN, None, self.file, self.number, String::new);
        }
        let wire_bytes = u32::try_from(expanded.headers.len()).unwrap_or(u32::MAX).saturating_add(expanded.rest.wire_bytes);
        ([&expanded.headers, expanded.rest.captured].concat(), wire_bytes)
    }

    #[cold]
    fn note_cut(&mut self, frame: &Frame<'_>) {
        let detail = || format!("{} of {} bytes captured", frame.captured.len(), frame.frame_bytes);
        self.notes.add(SNAP_LENGTH, None, self.file, self.number, detail);
    }

    #[cold]
    fn note_lie(&mut self, name: &'static str, claimed: u32, there: u32) {
        let detail = || format!("{name} length {claimed} where {there} bytes are");
        self.notes.add(LENGTH_LIES, None, self.file, self.number, detail);
    }

    /// On a loopback interface there is no wire, and no header more on it.
    #[cold]
    fn note_huge(&mut self, ip: &Ip<'_>) {
        let is_loopback = match ip.source {
            Address::V4([first, ..]) => first == 127,
            Address::V6(octets) => octets == std::net::Ipv6Addr::LOCALHOST.octets(),
        };
        if !is_loopback {
            let detail = || format!("an IP packet of {} bytes", ip.header_bytes + ip.rest.wire_bytes);
            self.notes.add(HUGE_SEGMENT, None, self.file, self.number, detail);
        }
    }
}
