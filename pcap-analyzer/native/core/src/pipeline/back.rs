//! The second half of the pass: packets find their stream, bytes become messages, messages exchanges and sums.

use super::desk::{Desk, Rooms};
use super::front::{Batch, Others};
use super::{Options, Outcome, Sink};
use crate::arena::Arena;
use crate::exchanges::Timing;
use crate::message::{Message, Side};
use crate::note;
use crate::packet::{Endpoint, Packet, TcpHeader, Transport};
use crate::protocols::framing::{datagram, Cutter, Half};
use crate::protocols::{choose, is_port_of, Decoder, FoundBy, Pairing, Protocol};
use crate::sessions::{add_sums, without_message, PartSums, Session};
use crate::span::Piece;
use crate::transport::{Delivery, Reassembly, Seat};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

/// Packets with payload of a stream that are looked at for a protocol before the stream is left alone.
const TRIES: u8 = 32;
/// Segments whose acknowledgement is awaited at once, for samples of TCP's round trip.
const IN_FLIGHT: usize = 64;
/// A packet with the IP identification of the one before it, sooner than this, is a copy that the capture took (trap 7).
const COPY_NS: i64 = 1_000_000;
/// The same where there is no IP identification to compare.
const COPY_WITHOUT_IDENTIFICATION_NS: i64 = 50_000;
/// Bytes kept of a message that is not complete, where only sums are wanted.
const KEEP_FOR_SUMS: usize = 1 << 16;
/// Bytes kept of a message that is not complete, where its row is wanted.
const KEEP_FOR_ROWS: usize = 1 << 24;

/// Packets looked at together, see [`Back::touch`].
const GROUP: usize = 16;

/// What both sides of one protocol's talk share.
struct Conversation {
    protocol: &'static Protocol,
    decoder: Box<dyn Decoder>,
    pairing: Box<dyn Pairing>,
    session: u32,
    halves: [Half; 2],
}

/// What tells a packet from the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Fingerprint {
    identification: Option<u16>,
    header: TcpHeader,
    payload_bytes: u32,
    beginning: [u8; 16],
}

/// One direction of a TCP connection besides its bytes.
#[derive(Debug, Default)]
struct TcpHalf {
    reassembly: Reassembly,
    syn_sequence: Option<u32>,
    is_passed_over: bool,
    in_flight: VecDeque<(u32, i64)>,
}

/// Frames without a message that came before the session.
#[derive(Debug, Default)]
struct Waiting {
    parts: PartSums,
    frames: u64,
}

struct Stream {
    index: u32,
    transport: &'static str,
    client: Endpoint,
    server: Endpoint,
    is_multicast: bool,
    conversation: Option<u32>,
    tries: u8,
    frame_first: u64,
    time_first_ns: i64,
    last_frame: u64,
    last_time_ns: i64,
    last_file: u16,
    fingerprints: [(i64, Fingerprint); 2],
    waiting: Option<Box<[Waiting; 2]>>,
    tcp: [TcpHalf; 2],
    syn_ns: Option<i64>,
    handshake_ns: Option<i64>,
}

/// The second half.
pub struct Back<'s> {
    rooms: Rooms<'s>,
    streams: Arena<Stream>,
    conversations: Arena<Conversation>,
    message: Message,
    /// Clients that sent a request to a group: the conversation where the members' answers belong.
    group_requests: FxHashMap<Endpoint, u32>,
    unmatched: BTreeMap<(&'static str, u16), (u64, u64)>,
    others: Others,
    keep_bytes: usize,
}

impl<'s> Back<'s> {
    /// A second half at the start of a capture.
    pub fn new(options: &'s Options, files: Vec<Arc<str>>, sink: &'s mut dyn Sink) -> Self {
        let message = Message { wants_text: options.wants_messages, wants_secrets: options.show_secrets, ..Message::default() };
        Self {
            rooms: Rooms::new(options, files, sink),
            streams: Arena::default(),
            conversations: Arena::default(),
            message,
            group_requests: FxHashMap::default(),
            unmatched: BTreeMap::new(),
            others: Others::new(),
            keep_bytes: if options.wants_messages { KEEP_FOR_ROWS } else { KEEP_FOR_SUMS },
        }
    }

    /// Whether nobody takes rows any more.
    pub fn is_closed(&self) -> bool {
        self.rooms.sink.is_closed()
    }

    /// Takes a batch of packets.
    pub fn take(&mut self, batch: &Batch) {
        for group in batch.packets.chunks(GROUP) {
            self.touch(group);
            for (packet, seat, range) in group {
                let bytes = batch.bytes.get(range.clone()).unwrap_or(&[]);
                self.packet(packet, *seat, bytes);
            }
        }
    }

    /// Reads a little of what each packet of a group will need: the processor then fetches all of it at once, not one after the other, which
    /// makes captures of many streams faster by a third.
    fn touch(&self, group: &[(Packet, Seat, Range<usize>)]) {
        for (packet, seat, _) in group {
            let Some(stream) = self.streams.get(seat.place) else { continue };
            black_box(stream.tcp.get(stream.side(packet).index()).map(|half| half.in_flight.len()));
            let conversation = stream.conversation.and_then(|at| self.conversations.get(at));
            let session = conversation.and_then(|conversation| self.rooms.sessions.get(conversation.session));
            black_box(session.map(Session::touch));
        }
    }

    #[inline]
    fn packet(&mut self, packet: &Packet, seat: Seat, bytes: &[u8]) {
        if let Some(index) = seat.opens {
            self.streams.add(|_| Stream::new(index, packet));
        }
        let place = seat.place;
        let Some(stream) = self.streams.get_mut(place) else { return };
        let from = stream.side(packet);
        if stream.is_copy(packet, from, bytes) {
            return self.copy(packet, place, from);
        }
        match packet.transport {
            Transport::Udp => self.udp(packet, place, from, bytes),
            Transport::Tcp(header) => self.tcp(packet, place, from, &header, bytes),
        }
    }

    /// Counts a copy that the capture took of the packet before.
    fn copy(&mut self, packet: &Packet, place: u32, from: Side) {
        self.control(packet, place, from);
        let Some(session) = self.session_of(place) else { return };
        self.rooms.notes.add(note::CAPTURED_TWICE, Some(session), packet.file, packet.frame, String::new);
        if let Some(session) = self.rooms.sessions.get_mut(session) {
            session.row.captured_twice += 1;
        }
    }

    fn session_of(&self, place: u32) -> Option<u32> {
        let conversation = self.streams.get(place)?.conversation?;
        self.conversations.get(conversation).map(|conversation| conversation.session)
    }

    /// Counts a packet without a message.
    fn control(&mut self, packet: &Packet, place: u32, from: Side) {
        let parts = without_message(&packet.headers, packet.payload_bytes.into());
        if let Some(session) = self.session_of(place) {
            if let Some(session) = self.rooms.sessions.get_mut(session) {
                session.control(from, &parts, 1, (packet.frame, packet.time_ns));
            }
            return;
        }
        let Some(stream) = self.streams.get_mut(place) else { return };
        if let Some(waiting) = stream.waiting.get_or_insert_default().get_mut(from.index()) {
            add_sums(&mut waiting.parts, &parts);
            waiting.frames += 1;
        }
    }

    fn udp(&mut self, packet: &Packet, place: u32, from: Side, bytes: &[u8]) {
        if packet.payload_bytes == 0 {
            return self.control(packet, place, from);
        }
        let Some(at) = self.conversation(packet, place, bytes) else { return self.control(packet, place, from) };
        let Some((_, mut talk)) = self.talk(packet, place, at) else { return };
        datagram(&mut talk.cutter, Piece::whole(packet), bytes, &mut talk.desk);
    }

    fn tcp(&mut self, packet: &Packet, place: u32, from: Side, header: &TcpHeader, bytes: &[u8]) {
        self.watch_tcp(packet, place, from, header);
        if packet.payload_bytes == 0 {
            self.control(packet, place, from);
        }
        let Some(at) = self.conversation(packet, place, bytes) else {
            if packet.payload_bytes > 0 {
                self.pass_over(packet, place, from, header);
            }
            return;
        };
        let Some((halves, mut talk)) = self.talk(packet, place, at) else { return };
        if header.has(TcpHeader::ACK) {
            talk.acknowledge(halves, header.acknowledgment);
        }
        if packet.payload_bytes > 0 {
            // data in a SYN (TCP Fast Open, RFC 7413) stands behind the SYN's own sequence number
            let sequence = header.sequence.wrapping_add(u32::from(header.has(TcpHeader::SYN)));
            talk.segment(halves, sequence, packet, bytes);
        }
    }

    /// A segment of a stream whose protocol is not known (yet): if it is found out later, decoding begins in mid-stream.
    fn pass_over(&mut self, packet: &Packet, place: u32, from: Side, header: &TcpHeader) {
        self.control(packet, place, from);
        if let Some(half) = self.streams.get_mut(place).and_then(|stream| stream.tcp.get_mut(from.index())) {
            half.is_passed_over = true;
            half.reassembly.segment(header.sequence, Piece::whole(packet), &[], &mut |_| {});
        }
    }

    /// Watches TCP's own opening and acknowledgements.
    #[inline]
    fn watch_tcp(&mut self, packet: &Packet, place: u32, from: Side, header: &TcpHeader) {
        let session = self.session_of(place);
        let Some(stream) = self.streams.get_mut(place) else { return };
        let Some((timing, time_ns)) = stream.watch(packet, from, header) else { return };
        match session.and_then(|session| self.rooms.sessions.get_mut(session)) {
            Some(session) => session.sample(timing, "", time_ns, false),
            None if timing == Timing::TcpHandshake => stream.handshake_ns = Some(time_ns),
            None => {}
        }
    }

    /// The stream's conversation, begun where these bytes show which protocol it speaks.
    #[inline]
    fn conversation(&mut self, packet: &Packet, place: u32, bytes: &[u8]) -> Option<u32> {
        let stream = self.streams.get_mut(place)?;
        if stream.conversation.is_some() || packet.payload_bytes == 0 {
            return stream.conversation;
        }
        if let (Some(&group), Transport::Udp) = (self.group_requests.get(&packet.destination), packet.transport) {
            stream.conversation = Some(group);
            (stream.client, stream.server) = (packet.destination, packet.source);
            return stream.conversation;
        }
        if stream.tries >= TRIES {
            return None;
        }
        stream.tries += 1;
        let (protocol, found_by) = choose(&self.rooms.options.decode_as, packet, bytes)?;
        Some(self.open_conversation(packet, place, protocol, found_by))
    }

    fn open_conversation(&mut self, packet: &Packet, place: u32, protocol: &'static Protocol, found_by: FoundBy) -> u32 {
        let file = self.rooms.file(packet.file);
        let Some(stream) = self.streams.get_mut(place) else { return place };
        stream.decide_sides(protocol);
        let session = self.rooms.sessions.add(|number| stream.session(number, packet, protocol, found_by, file));
        let mut note = |kind, detail: String| self.rooms.notes.add(kind, Some(session), packet.file, packet.frame, || detail);
        if found_by == FoundBy::Heuristic {
            note(note::HEURISTIC, format!("{} on port {}", protocol.name, stream.server.port));
        }
        if !stream.is_from_start() && matches!(packet.transport, Transport::Tcp(_)) {
            note(note::MID_STREAM, String::new());
        }
        let halves = stream.halves();
        let decoder = (protocol.decoder)(&self.rooms.options.decoding);
        let pairing = (protocol.pairing)();
        let at = self.conversations.add(|_| Conversation { protocol, decoder, pairing, session, halves });
        stream.conversation = Some(at);
        if stream.is_multicast {
            self.group_requests.insert(packet.source, at);
        }
        self.hand_over_waiting(place, session);
        at
    }

    /// What came before the session belongs to it too.
    fn hand_over_waiting(&mut self, place: u32, session: u32) {
        let Some(stream) = self.streams.get_mut(place) else { return };
        let Some(session) = self.rooms.sessions.get_mut(session) else { return };
        for (from, waiting) in [Side::Client, Side::Server].into_iter().zip(*stream.waiting.take().unwrap_or_default()) {
            session.control(from, &waiting.parts, waiting.frames, (stream.frame_first, stream.time_first_ns));
        }
        if let Some(time_ns) = stream.handshake_ns {
            session.sample(Timing::TcpHandshake, "", time_ns, false);
        }
    }

    /// The stream's TCP halves, and a place at the rooms for the bytes of a packet.
    #[inline]
    fn talk<'a>(&'a mut self, packet: &'a Packet, place: u32, at: u32) -> Option<(&'a mut [TcpHalf; 2], Talk<'a, 's>)> {
        let Self { rooms, streams, conversations, message, keep_bytes, .. } = self;
        let stream = streams.get_mut(place)?;
        let conversation = conversations.get_mut(at)?;
        let from = stream.side(packet);
        let cutter = Cutter {
            decoder: conversation.decoder.as_mut(),
            message,
            from,
            now: (packet.frame, packet.time_ns),
            keep_bytes: *keep_bytes,
            wants_frames: rooms.options.wants_messages,
        };
        let desk = Desk {
            rooms,
            pairing: conversation.pairing.as_mut(),
            protocol: conversation.protocol,
            session: conversation.session,
            stream: stream.index,
            transport: stream.transport,
            file: packet.file,
            client: stream.client,
            server: stream.server,
            earlier_frames: packet.earlier_frames.as_deref().unwrap_or(&[]),
        };
        Some((&mut stream.tcp, Talk { desk, cutter, halves: &mut conversation.halves }))
    }

    /// The capture has ended: what is unfinished is given up, what is open is closed.
    pub fn finish(mut self) -> Outcome {
        for place in 0..u32::try_from(self.streams.len()).unwrap_or(u32::MAX) {
            self.finish_stream(place);
        }
        for conversation in self.conversations.iter_mut() {
            conversation.pairing.end(&mut self.rooms.exchanges);
        }
        self.rooms.exchanges.finish();
        self.rooms.take_events();
        drop((self.streams, self.conversations, self.rooms.exchanges));
        let mut outcome = Outcome {
            messages: self.rooms.messages,
            unmatched_ports: self.unmatched,
            others: self.others,
            sessions: self.rooms.sessions,
            notes: self.rooms.notes,
            ..Outcome::default()
        };
        outcome.note_sessions();
        outcome
    }

    fn finish_stream(&mut self, place: u32) {
        let Self { rooms, streams, conversations, message, keep_bytes, .. } = self;
        let Some(stream) = streams.get_mut(place) else { return };
        let Some(conversation) = stream.conversation.and_then(|at| conversations.get_mut(at)) else {
            return self.leave_alone(place);
        };
        for from in [Side::Client, Side::Server] {
            let cutter = Cutter {
                decoder: conversation.decoder.as_mut(),
                message,
                from,
                now: (stream.last_frame, stream.last_time_ns),
                keep_bytes: *keep_bytes,
                wants_frames: rooms.options.wants_messages,
            };
            let desk = Desk {
                rooms,
                pairing: conversation.pairing.as_mut(),
                protocol: conversation.protocol,
                session: conversation.session,
                stream: stream.index,
                transport: stream.transport,
                file: stream.last_file,
                client: stream.client,
                server: stream.server,
                earlier_frames: &[],
            };
            let mut talk = Talk { desk, cutter, halves: &mut conversation.halves };
            talk.finish(&mut stream.tcp);
        }
    }

    /// A stream whose protocol was not found counts with the others.
    fn leave_alone(&mut self, place: u32) {
        let Some(stream) = self.streams.get(place) else { return };
        let frames: u64 = stream.waiting.iter().flat_map(|both| both.iter()).map(|waiting| waiting.frames).sum();
        let bytes: u64 = stream.waiting.iter().flat_map(|both| both.iter()).flat_map(|waiting| waiting.parts).sum();
        let port = stream.client.port.min(stream.server.port);
        let sums = [self.unmatched.entry((stream.transport, port)).or_default(), self.others.entry(stream.transport).or_default()];
        for (frame_sum, byte_sum) in sums {
            *frame_sum += frames;
            *byte_sum += bytes;
        }
    }
}

/// A conversation in the act of taking bytes of a packet.
struct Talk<'a, 's> {
    desk: Desk<'a, 's>,
    cutter: Cutter<'a>,
    halves: &'a mut [Half; 2],
}

impl Talk<'_, '_> {
    /// Bytes of the sender's direction.
    #[inline]
    fn segment(&mut self, tcp: &mut [TcpHalf; 2], sequence: u32, packet: &Packet, bytes: &[u8]) {
        let at = self.cutter.from.index();
        let (Some(tcp), Some(half)) = (tcp.get_mut(at), self.halves.get_mut(at)) else { return };
        let (cutter, desk) = (&mut self.cutter, &mut self.desk);
        let is_behind =
            tcp.reassembly.segment(sequence, Piece::whole(packet), bytes, &mut |delivery| deliver(delivery, half, cutter, desk));
        if is_behind {
            if let Some(session) = desk.rooms.sessions.get_mut(desk.session) {
                session.row.tcp_out_of_order += 1;
            }
        }
    }

    /// An acknowledgement tells that the peer's missing segments did arrive there.
    #[inline]
    fn acknowledge(&mut self, tcp: &mut [TcpHalf; 2], acknowledgment: u32) {
        let peer = self.cutter.from.peer();
        let (Some(tcp), Some(half)) = (tcp.get_mut(peer.index()), self.halves.get_mut(peer.index())) else { return };
        if !tcp.reassembly.is_holding() {
            return;
        }
        let from = std::mem::replace(&mut self.cutter.from, peer);
        let (cutter, desk) = (&mut self.cutter, &mut self.desk);
        tcp.reassembly.peer_acknowledges(acknowledgment, &mut |delivery| deliver(delivery, half, cutter, desk));
        self.cutter.from = from;
    }

    /// The end of the sender's direction.
    fn finish(&mut self, tcp: &mut [TcpHalf; 2]) {
        let from = self.cutter.from;
        let (Some(tcp), Some(half)) = (tcp.get_mut(from.index()), self.halves.get_mut(from.index())) else { return };
        let (cutter, desk) = (&mut self.cutter, &mut self.desk);
        tcp.reassembly.finish(&mut |delivery| deliver(delivery, half, cutter, desk));
        half.finish(from, desk);
    }
}

/// Passes on what came in order.
#[inline]
fn deliver(delivery: Delivery<'_>, half: &mut Half, cutter: &mut Cutter<'_>, desk: &mut Desk<'_, '_>) {
    match delivery {
        Delivery::Chunk(piece, bytes) => half.chunk(cutter, piece, bytes, desk),
        Delivery::Gap(missing) => half.gap(cutter, missing, desk),
        Delivery::Repeated(piece) => {
            let parts = without_message(&piece.share(), piece.len().into());
            let is_whole = piece.len() == piece.total;
            if let Some(session) = desk.rooms.sessions.get_mut(desk.session) {
                session.row.tcp_retransmissions += 1;
                session.control(cutter.from, &parts, u64::from(is_whole), (piece.frame, piece.time_ns));
            }
        }
    }
}

impl Stream {
    fn new(index: u32, packet: &Packet) -> Self {
        let is_answer = matches!(packet.transport, Transport::Tcp(header) if header.has(TcpHeader::SYN) && header.has(TcpHeader::ACK));
        let (client, server) = if is_answer { (packet.destination, packet.source) } else { (packet.source, packet.destination) };
        Self {
            index,
            transport: if matches!(packet.transport, Transport::Udp) { "udp" } else { "tcp" },
            client,
            server,
            is_multicast: packet.destination.address.is_multicast(),
            conversation: None,
            tries: 0,
            frame_first: packet.frame,
            time_first_ns: packet.time_first_ns,
            last_frame: packet.frame,
            last_time_ns: packet.time_ns,
            last_file: packet.file,
            fingerprints: Default::default(),
            waiting: None,
            tcp: Default::default(),
            syn_ns: None,
            handshake_ns: None,
        }
    }

    #[inline]
    fn side(&self, packet: &Packet) -> Side {
        if packet.source == self.client {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Whether the connection's opening is in the capture.
    fn is_from_start(&self) -> bool {
        self.tcp.iter().any(|half| half.syn_sequence.is_some())
    }

    /// The directions' states as decoding begins.
    fn halves(&self) -> [Half; 2] {
        let is_from_start = self.is_from_start();
        self.tcp.each_ref().map(|half| if is_from_start && !half.is_passed_over { Half::default() } else { Half::in_mid_stream() })
    }

    /// Where no SYN told it, the server is the side with one of the protocol's ports, else the one that did not speak first.
    fn decide_sides(&mut self, protocol: &Protocol) {
        if self.is_from_start() || !is_port_of(protocol, self.client.port) || is_port_of(protocol, self.server.port) {
            return;
        }
        std::mem::swap(&mut self.client, &mut self.server);
        if let Some(waiting) = &mut self.waiting {
            waiting.swap(0, 1);
        }
        self.tcp.swap(0, 1);
        self.fingerprints.swap(0, 1);
    }

    fn session(&self, number: u32, packet: &Packet, protocol: &Protocol, found_by: FoundBy, file: Option<Arc<str>>) -> Session {
        let mut session = Session::new(number, self.client, self.server, self.frame_first, self.time_first_ns);
        session.row.protocol = protocol.name;
        session.row.transport = self.transport;
        session.row.found_by = found_by.name();
        session.row.file = file;
        session.row.stream = self.index;
        session.row.frame_last = packet.frame;
        session
    }

    /// Whether the packet is a copy, made by the capture, of the one before it in its direction (trap 7, 60).
    #[inline]
    fn is_copy(&mut self, packet: &Packet, from: Side, bytes: &[u8]) -> bool {
        (self.last_frame, self.last_time_ns, self.last_file) = (packet.frame, packet.time_ns, packet.file);
        let mut beginning = [0; 16];
        for (to, byte) in beginning.iter_mut().zip(bytes) {
            *to = *byte;
        }
        let header = match packet.transport {
            Transport::Tcp(header) => header,
            Transport::Udp => TcpHeader::default(),
        };
        let identification = packet.ip_identification.filter(|&identification| identification != 0);
        let now = Fingerprint { identification, header, payload_bytes: packet.payload_bytes, beginning };
        let Some((before_ns, before)) = self.fingerprints.get_mut(from.index()) else { return false };
        let since_ns = packet.time_ns - *before_ns;
        let window_ns = if identification.is_some() { COPY_NS } else { COPY_WITHOUT_IDENTIFICATION_NS };
        let is_telling = identification.is_some() || packet.payload_bytes > 0;
        let is_copy = *before == now && is_telling && (0..window_ns).contains(&since_ns);
        if !is_copy {
            (*before_ns, *before) = (packet.time_ns, now);
        }
        is_copy
    }

    /// Follows SYN, SYN-ACK, ACK and the acknowledgements of data. Returns the time that this packet completes.
    #[inline]
    fn watch(&mut self, packet: &Packet, from: Side, header: &TcpHeader) -> Option<(Timing, i64)> {
        if header.has(TcpHeader::SYN) {
            self.open_half(packet, from, header);
        }
        let is_ack = header.has(TcpHeader::ACK);
        let mut sample = None;
        if is_ack && !header.has(TcpHeader::SYN) && from == Side::Client {
            sample = self.syn_ns.take().filter(|_| self.tcp.iter().all(|half| half.syn_sequence.is_some()));
            sample = sample.map(|syn_ns| packet.time_ns - syn_ns);
        }
        let [client, server] = &mut self.tcp;
        let (mine, peers) = if from == Side::Client { (client, server) } else { (server, client) };
        if packet.payload_bytes > 0 && (mine.reassembly.is_next(header.sequence) || !mine.reassembly.is_started()) {
            mine.send(header.sequence.wrapping_add(packet.payload_bytes), packet.time_ns);
        } else if packet.payload_bytes > 0 {
            mine.in_flight.clear();
        }
        let acknowledged = if is_ack { peers.acknowledged(header.acknowledgment, packet.time_ns) } else { None };
        sample.map(|time_ns| (Timing::TcpHandshake, time_ns)).or(acknowledged.map(|time_ns| (Timing::TcpAck, time_ns)))
    }

    fn open_half(&mut self, packet: &Packet, from: Side, header: &TcpHeader) {
        if from == Side::Client && !header.has(TcpHeader::ACK) {
            self.syn_ns.get_or_insert(packet.time_ns);
        }
        let Some(half) = self.tcp.get_mut(from.index()) else { return };
        if half.syn_sequence.is_none() {
            half.syn_sequence = Some(header.sequence);
            half.reassembly.open(header.sequence);
        }
    }
}

impl TcpHalf {
    /// New data up to `end` was sent.
    #[inline]
    fn send(&mut self, end: u32, time_ns: i64) {
        if self.in_flight.len() < IN_FLIGHT {
            self.in_flight.push_back((end, time_ns));
        }
    }

    /// The peer acknowledges up to `acknowledgment`: the time since the segment that ends exactly there was sent.
    #[inline]
    fn acknowledged(&mut self, acknowledgment: u32, time_ns: i64) -> Option<i64> {
        let mut sample = None;
        while let Some(&(end, sent_ns)) = self.in_flight.front() {
            if acknowledgment.wrapping_sub(end).cast_signed() < 0 {
                break;
            }
            sample = (end == acknowledgment).then_some(time_ns - sent_ns);
            self.in_flight.pop_front();
        }
        sample
    }
}
