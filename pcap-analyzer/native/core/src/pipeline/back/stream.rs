//! A stream as its packets show it: who talks, what was captured twice, what TCP says of itself.

use crate::exchanges::{Sample, Timing};
use crate::message::Side;
use crate::packet::{Endpoint, Packet, TcpHeader, Transport, COPY_NS};
use crate::pipeline::Options;
use crate::protocols::framing::Half;
use crate::protocols::{choose, choose_within, FoundBy, Framing, Protocol, FRAMED};
use crate::sessions::{add, without_message, Before, Beginning};
use crate::transport::{distance, Delivery, Reassembly, Seat};
use std::collections::VecDeque;
use std::sync::Arc;

/// Packets with payload of a stream that are looked at for a protocol before the stream is left alone.
const TRIES: u8 = 32;
/// Segments whose acknowledgement is awaited at once, for samples of TCP's round trip.
const IN_FLIGHT: usize = 1024;
/// As [`COPY_NS`], where there is no IP identification to compare.
const COPY_WITHOUT_IDENTIFICATION_NS: u64 = 50_000;

/// One direction of a TCP connection; what every segment needs stands in one line of the processor's cache.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct TcpHalf {
    in_flight: InFlight,
    pub(super) reassembly: Reassembly,
    pub(super) syn_sequence: Option<u32>,
    pub(super) is_passed_over: bool,
    /// Whether its last segment said that it takes no more bytes.
    is_window_closed: bool,
    /// Whether it has sent a SYN that opens the connection, of which no answer was acknowledged yet.
    is_opening: bool,
    /// When it sent that SYN.
    syn_ns: i64,
    /// Where its FIN stands, once it has sent it.
    fin_sequence: Option<u32>,
    /// Whether the peer has acknowledged its FIN.
    pub(super) is_end_acknowledged: bool,
}

/// Segments that wait for their acknowledgement: where each ends and when it was sent. As a rule there is one.
#[derive(Debug, Default)]
struct InFlight {
    /// Whether one waits.
    is_any: bool,
    end: u32,
    sent_ns: i64,
    /// In a box, since it would take half of a line here and is seldom wanted.
    #[allow(clippy::box_collection)]
    more: Option<Box<VecDeque<(u32, i64)>>>,
}

impl TcpHalf {
    /// Whether it has sent its FIN.
    #[inline]
    pub(super) const fn has_ended(&self) -> bool {
        self.fin_sequence.is_some()
    }
}

impl InFlight {
    /// New data up to `end` was sent.
    #[inline]
    fn send(&mut self, end: u32, time_ns: i64) {
        if self.is_any {
            return self.send_more(end, time_ns);
        }
        (self.is_any, self.end, self.sent_ns) = (true, end, time_ns);
    }

    fn send_more(&mut self, end: u32, time_ns: i64) {
        let more = self.more.get_or_insert_default();
        if more.len() + 1 < IN_FLIGHT {
            more.push_back((end, time_ns));
        }
    }

    /// The peer acknowledges up to `acknowledgment`: the time since the segment that ends exactly there was sent.
    #[inline]
    fn acknowledged(&mut self, acknowledgment: u32, time_ns: i64) -> Option<i64> {
        let mut sample = None;
        while self.is_any {
            if distance(acknowledgment, self.end) < 0 {
                break;
            }
            sample = (self.end == acknowledgment).then_some(time_ns - self.sent_ns);
            let next = self.more.as_mut().and_then(|more| more.pop_front());
            self.is_any = next.is_some();
            (self.end, self.sent_ns) = next.unwrap_or_default();
        }
        sample
    }

    fn clear(&mut self) {
        self.is_any = false;
        self.more.iter_mut().for_each(|more| more.clear());
    }
}

/// Time and digest of a packet.
type Stamp = (i64, u64);

/// The packets of a direction before the newest one, the newest first. Of a burst that is captured twice the copies may come behind it: with the newest,
/// as far as `editcap -d` looks back.
#[derive(Debug, Default)]
struct Earlier([Stamp; 3]);

impl Earlier {
    /// Whether one of them, or the `newest`, has the same digest and is no further away than `window_ns`; a second capture interface may stamp a copy
    /// earlier. What is no copy becomes the newest; the one before it is forgotten where it is too far away already: then the others are as well.
    #[inline]
    fn has(&mut self, newest: &mut Stamp, stamp: Stamp, window_ns: u64) -> bool {
        if stamp.0.abs_diff(newest.0) >= window_ns {
            *newest = stamp;
            return false;
        }
        self.has_one_of(newest, stamp, window_ns)
    }

    fn has_one_of(&mut self, newest: &mut Stamp, stamp: Stamp, window_ns: u64) -> bool {
        let is_same = |&(before_ns, before): &Stamp| before == stamp.1 && stamp.0.abs_diff(before_ns) < window_ns;
        let is_copy = is_same(newest) || self.0.iter().any(is_same);
        if !is_copy {
            let [second, third, _] = self.0;
            self.0 = [*newest, second, third];
            *newest = stamp;
        }
        is_copy
    }
}

/// Counts what a reassembly passes on before the session. Returns whether these are bytes that go by undecoded.
pub(super) fn wait(before: &mut Before, delivery: &Delivery<'_>) -> bool {
    if let Delivery::Chunk(piece, _) | Delivery::Repeated { piece, .. } | Delivery::KeepAlive(piece) = delivery {
        add(&mut before.parts, &without_message(&piece.share(), piece.len()));
        before.frames += u64::from(piece.to() == piece.payload_bytes);
    }
    if let Delivery::Chunk(piece, _) = delivery {
        before.unparsed_bytes += u64::from(piece.len());
    }
    before.retransmissions += u64::from(matches!(delivery, Delivery::Repeated { is_first: true, .. }));
    !matches!(delivery, Delivery::Repeated { .. } | Delivery::KeepAlive(_))
}

/// Who talks in a stream.
#[derive(Debug)]
pub struct Ends {
    /// Wireshark's stream index.
    pub index: u32,
    /// "udp" or "tcp".
    pub transport: &'static str,
    /// The client's endpoint.
    pub client: Endpoint,
    /// The server's endpoint.
    pub server: Endpoint,
}

impl Ends {
    /// Who the greater one of the two is.
    fn greater(&self) -> Side {
        if self.client > self.server {
            Side::Client
        } else {
            Side::Server
        }
    }
}

/// Where a stream's messages go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) conversation: u32,
    /// The conversation's session.
    pub(super) session: u32,
    /// Of the stream of a group's member: its number among them, from 1; else 0.
    pub(super) member: u16,
    /// Who the greater one of the two endpoints is.
    greater: Side,
}

/// A stream. The first line of the processor's cache holds what every packet needs, the next two what few do.
#[repr(C, align(64))]
pub(super) struct Stream {
    /// What each side sent last.
    newest: [Stamp; 2],
    /// The last packet, of TCP: nothing is unfinished where datagrams end.
    pub(super) last_frame: u64,
    pub(super) last_time_ns: i64,
    /// None as long as its protocol is not known.
    pub(super) known: Option<Known>,
    pub(super) last_file: u16,
    pub(super) tries: u8,
    pub(super) is_multicast: bool,
    pub(super) ends: Ends,
    /// Number of its first packet among all packets.
    pub(super) order: u64,
    pub(super) frame_first: u64,
    pub(super) time_first_ns: i64,
    pub(super) waiting: Option<Box<[Before; 2]>>,
    /// What each side sent before its newest.
    earlier: [Earlier; 2],
    pub(super) tcp: [TcpHalf; 2],
    pub(super) handshake_ns: Option<i64>,
    /// Whether a SYN was sent again.
    is_syn_repeated: bool,
}

impl Stream {
    pub(super) fn new(index: u32, order: u64, packet: &Packet) -> Self {
        let is_answer = matches!(packet.transport, Transport::Tcp(header) if header.has(TcpHeader::SYN) && header.has(TcpHeader::ACK));
        let (client, server) = if is_answer { (packet.destination, packet.source) } else { (packet.source, packet.destination) };
        let transport = if matches!(packet.transport, Transport::Udp) { "udp" } else { "tcp" };
        Self {
            newest: Default::default(),
            last_frame: packet.frame,
            last_time_ns: packet.time_ns,
            known: None,
            last_file: packet.file,
            tries: 0,
            is_multicast: packet.destination.address.is_multicast(),
            ends: Ends { index, transport, client, server },
            order,
            frame_first: packet.frame,
            time_first_ns: packet.time_first_ns,
            waiting: None,
            earlier: Default::default(),
            tcp: Default::default(),
            handshake_ns: None,
            is_syn_repeated: false,
        }
    }

    /// Reads a little of what every packet needs.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        self.last_frame
    }

    /// The same of what a segment needs: its acknowledgement is for what the peer has in flight.
    #[inline]
    pub(super) fn touch_tcp(&self) -> [bool; 2] {
        self.tcp.each_ref().map(|half| half.in_flight.is_any)
    }

    /// Who sends the packet of a seat.
    #[inline]
    pub(super) fn side(&self, seat: Seat) -> Side {
        let greater = self.known.map_or_else(|| self.ends.greater(), |known| known.greater);
        if seat.is_from_greater {
            greater
        } else {
            greater.peer()
        }
    }

    /// Counts segments that wait for one before them, which does not come.
    pub(super) fn count_held(&mut self) {
        for (half, waiting) in self.tcp.iter_mut().zip(self.waiting.iter_mut().flat_map(|both| both.iter_mut())) {
            half.reassembly.finish(false, &mut |delivery| half.is_passed_over |= wait(waiting, &delivery));
        }
    }

    /// Whether the connection's opening is in the capture.
    pub(super) fn is_from_start(&self) -> bool {
        self.tcp.iter().any(|half| half.syn_sequence.is_some())
    }

    /// The directions' states as decoding begins.
    pub(super) fn halves(&self) -> [Half; 2] {
        let is_from_start = self.is_from_start();
        self.tcp.each_ref().map(|half| if is_from_start && !half.is_passed_over { Half::default() } else { Half::in_mid_stream() })
    }

    /// Whether the connection of a segment began before the capture.
    fn is_in_mid_stream(&self, packet: &Packet) -> bool {
        matches!(packet.transport, Transport::Tcp(_)) && !self.is_from_start()
    }

    /// Whether its packets are not looked at any more. A stream whose start is not captured may go on within a long message for as long as it likes.
    pub(super) fn is_left_alone(&self, packet: &Packet) -> bool {
        self.tries >= TRIES && !self.is_in_mid_stream(packet)
    }

    /// The protocol that a packet's bytes show. Behind the first tries only where packets begin is looked at.
    pub(super) fn choose(&mut self, options: &Options, packet: &Packet, bytes: &[u8]) -> Option<(&'static Protocol, FoundBy)> {
        let is_tried = self.tries < TRIES;
        self.tries = self.tries.saturating_add(1);
        let by_start = if is_tried { choose(&options.decode_as, packet, bytes) } else { None };
        let places = if is_tried { bytes.len() } else { 1 };
        let within = || choose_within(&options.decode_as, &options.decoding, packet, bytes, places);
        let is_in_mid_stream = self.is_in_mid_stream(packet);
        let is_framed = is_tried && matches!(packet.transport, Transport::Tcp(_)) && options.decoding.framing != Framing::Unknown;
        by_start.or_else(|| is_in_mid_stream.then(within).flatten()).or(is_framed.then_some((&FRAMED, FoundBy::DecodeAs)))
    }

    /// Where no SYN told it, the server is the side at a port where one is expected, else the one that did not speak first.
    pub(super) fn decide_sides(&mut self, is_expected: impl Fn(u16) -> bool) {
        if self.is_from_start() || !is_expected(self.ends.client.port) || is_expected(self.ends.server.port) {
            return;
        }
        std::mem::swap(&mut self.ends.client, &mut self.ends.server);
        if let Some(waiting) = &mut self.waiting {
            waiting.swap(0, 1);
        }
        self.tcp.swap(0, 1);
        self.newest.swap(0, 1);
        self.earlier.swap(0, 1);
    }

    /// Its messages go to a conversation from now on, of a group's with this member.
    pub(super) fn speak(&mut self, conversation: u32, session: u32, member: u16) {
        self.known = Some(Known { conversation, session, member, greater: self.ends.greater() });
    }

    /// It goes on with a conversation that another stream began, of a group's with this member; this packet is sent by `from`.
    pub(super) fn join(&mut self, conversation: u32, session: u32, member: u16, packet: &Packet, from: Side) {
        (self.ends.client, self.ends.server) = match from {
            Side::Client => (packet.source, packet.destination),
            Side::Server => (packet.destination, packet.source),
        };
        self.speak(conversation, session, member);
    }

    /// How its session begins, with the packet that showed the protocol.
    pub(super) fn begins(&self, packet: &Packet, order: u64, protocol: &Protocol, found_by: FoundBy, file: Option<Arc<str>>) -> Beginning {
        let Ends { index, transport, client, server } = self.ends;
        Beginning {
            client,
            server,
            stream: index,
            transport,
            protocol: protocol.name,
            found_by: found_by.name(),
            file,
            frames: [self.frame_first, packet.frame],
            time_ns: self.time_first_ns,
            order,
        }
    }

    /// Whether the packet is a copy, made by the capture, of one just before it in its direction (trap 7, 60). What the sender sends again has another IP
    /// identification; where there is none, only packets that are not often alike tell (with a payload, SYN, FIN), and only when closer together.
    #[inline]
    pub(super) fn is_copy(&mut self, packet: &Packet, from: Side, digest: u64) -> bool {
        if matches!(packet.transport, Transport::Tcp(_)) {
            (self.last_frame, self.last_time_ns, self.last_file) = (packet.frame, packet.time_ns, packet.file);
        }
        let takes_room =
            packet.payload_bytes > 0 || matches!(packet.transport, Transport::Tcp(header) if header.has(TcpHeader::SYN | TcpHeader::FIN));
        let window_ns = match packet.is_identified() {
            true => COPY_NS,
            false if takes_room => COPY_WITHOUT_IDENTIFICATION_NS,
            false => return false,
        };
        let (Some(newest), Some(earlier)) = (self.newest.get_mut(from.index()), self.earlier.get_mut(from.index())) else { return false };
        earlier.has(newest, (packet.time_ns, digest), window_ns)
    }

    /// Whether a packet opens or ends its direction once more, as another one did before.
    #[inline]
    pub(super) fn is_again(&mut self, packet: &Packet, from: Side, header: &TcpHeader) -> bool {
        if !header.has(TcpHeader::SYN | TcpHeader::FIN) {
            return false;
        }
        let Some(half) = self.tcp.get_mut(from.index()) else { return false };
        if header.has(TcpHeader::SYN) {
            let is_again = half.syn_sequence == Some(header.sequence);
            self.is_syn_repeated |= is_again;
            return is_again;
        }
        let end = Some(header.sequence.wrapping_add(packet.payload_bytes));
        std::mem::replace(&mut half.fin_sequence, end) == end
    }

    /// A time that TCP tells; that of an opening is none where a SYN was sent again (Karn).
    pub(super) fn sample(&self, timing: Timing, time_ns: i64) -> Sample {
        let is_retransmitted = timing == Timing::TcpHandshake && self.is_syn_repeated;
        Sample { timing: Some(timing), kind: "", time_ns, is_retransmitted }
    }

    /// Follows SYN, SYN-ACK, ACK and the acknowledgements of data. Returns the time that this packet completes.
    #[inline]
    pub(super) fn watch(&mut self, packet: &Packet, from: Side, header: &TcpHeader) -> Option<(Timing, i64)> {
        if header.has(TcpHeader::SYN) {
            self.open_half(packet, from, header);
        }
        let is_ack = header.has(TcpHeader::ACK);
        let [client, server] = &mut self.tcp;
        let (mine, peers) = if from == Side::Client { (client, server) } else { (server, client) };
        let mut sample = None;
        if is_ack && !header.has(TcpHeader::SYN) && from == Side::Client {
            let is_open = mine.syn_sequence.is_some() && peers.syn_sequence.is_some();
            sample = std::mem::take(&mut mine.is_opening).then(|| packet.time_ns - mine.syn_ns).filter(|_| is_open);
        }
        mine.is_window_closed = header.window == 0;
        if packet.payload_bytes == 1 && peers.is_window_closed && mine.reassembly.is_next(header.sequence) {
            mine.reassembly.probe(header.sequence);
        }
        let goes_on = mine.reassembly.is_next(header.sequence) && !mine.reassembly.is_told_of();
        if packet.payload_bytes > 0 && (goes_on || !mine.reassembly.is_started()) {
            mine.in_flight.send(header.sequence.wrapping_add(packet.payload_bytes), packet.time_ns);
        } else if packet.payload_bytes > 0 {
            mine.in_flight.clear();
        }
        peers.is_end_acknowledged |= is_ack && peers.fin_sequence.is_some_and(|fin| fin.wrapping_add(1) == header.acknowledgment);
        let acknowledged = if is_ack { peers.in_flight.acknowledged(header.acknowledgment, packet.time_ns) } else { None };
        sample.map(|time_ns| (Timing::TcpHandshake, time_ns)).or(acknowledged.map(|time_ns| (Timing::TcpAck, time_ns)))
    }

    fn open_half(&mut self, packet: &Packet, from: Side, header: &TcpHeader) {
        let Some(half) = self.tcp.get_mut(from.index()) else { return };
        if from == Side::Client && !header.has(TcpHeader::ACK) && !half.is_opening {
            (half.is_opening, half.syn_ns) = (true, packet.time_ns);
        }
        // a server that keeps nothing of a SYN answers it anew with another number where it comes again (RFC 4987 §3.6)
        if half.syn_sequence.is_none_or(|before| half.reassembly.is_next(before.wrapping_add(1)) && !half.reassembly.is_holding()) {
            half.syn_sequence = Some(header.sequence);
            half.reassembly.open(header.sequence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn what_every_packet_needs_of_a_stream_is_in_one_line_and_of_a_half_too() {
        assert_eq!((64, 128), (offset_of!(Stream, ends), offset_of!(Stream, order)));
        assert_eq!((64, 128), (offset_of!(TcpHalf, syn_ns), size_of::<TcpHalf>()));
    }
}
