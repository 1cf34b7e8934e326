//! The second half of the pass: packets find their stream, bytes become messages, messages exchanges and sums.

mod ahead;
mod inside;
mod moves;
mod stream;
mod talk;

pub use inside::Sealed;
pub use stream::Ends;

use super::desk::{Desk, Rooms};
use super::front::{Arrival, Batch, Others};
use super::{free_later, Options, Sink};
use crate::arena::{Arena, IN_CACHE};
use crate::exchanges::{Event, Linker, Timing};
use crate::message::{Message, Side};
use crate::note::{self, Detail, Note, NoteKind, Notes};
use crate::packet::{Endpoint, Packet, TcpHeader, Transport};
use crate::pdml::{Failure, Pdml};
use crate::protocols::framing::{datagram, Cutter, Half, KEEP_MOST};
use crate::protocols::{expected, is_server_port, Decoder, FoundBy, Pairing, Protocol};
use crate::sessions::{add, without_message, Control, Kinds, Ledger, Why};
use crate::share::Part;
use crate::transport::Seat;
use ahead::GROUP;
use inside::Inside;
use moves::ConnectionIds;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use stream::{wait, Known, Stream, TcpHalf};
use talk::Talk;

/// Bytes kept of a message that is not complete, where only sums are wanted.
const KEEP_FOR_SUMS: usize = 1 << 16;

/// What is found as streams end with the capture is in the order of their first packets, behind all packets.
const BEHIND_ALL: u64 = 1 << 63;

/// What both sides of one protocol's talk share. The first line of the processor's cache holds what every message needs, the second what a byte stream's
/// needs too.
#[repr(C, align(64))]
struct Conversation {
    protocol: &'static Protocol,
    decoder: Box<dyn Decoder>,
    pairing: Box<dyn Pairing>,
    /// The protocol version that its messages told last.
    told: Option<&'static str>,
    inside: Inside,
    halves: [Half; 2],
    session: u32,
    /// Members of the group, where it is one's.
    members: u16,
}

/// What a conversation has beside its place at the rooms.
struct Tools<'a> {
    decoder: &'a mut Box<dyn Decoder>,
    halves: &'a mut [Half; 2],
    inside: &'a mut Inside,
}

impl Conversation {
    /// Its place at the rooms for what a stream of its brings from an input, and what is beside that.
    #[inline(always)]
    fn seated<'a, 's>(&'a mut self, rooms: &'a mut Rooms<'s>, ends: &'a Ends, known: Known, file: u16) -> (Desk<'a, 's>, Tools<'a>) {
        let Self { protocol, decoder, pairing, told, inside, halves, .. } = self;
        let desk = Desk {
            rooms,
            pairing,
            protocol,
            session: known.session,
            member: known.member,
            ends,
            file,
            told,
            earlier_frames: &[],
            has_inside: false,
            contents: None,
            opened: 0,
        };
        (desk, Tools { decoder, halves, inside })
    }
}

/// The second half.
pub struct Back<'s> {
    rooms: Rooms<'s>,
    streams: Arena<Stream>,
    conversations: Arena<Conversation>,
    message: Message,
    /// Clients that sent a request to a group: the conversation where the members' answers belong.
    group_requests: FxHashMap<Endpoint, u32>,
    connection_ids: ConnectionIds,
    unmatched: BTreeMap<(&'static str, u16), (u64, u64)>,
    others: Others,
    keep_bytes: usize,
    /// What tshark opens, where it was asked to.
    pdml: Option<Pdml>,
    /// Its part of the sessions.
    part: Part,
    /// Links publications, where there are other parts.
    linker: Option<&'s Mutex<Linker>>,
}

/// What is known of a part of the sessions when the capture has ended.
pub struct Closed {
    /// How many sessions it has, whether they were added up or not.
    pub begun: u32,
    /// Its sessions and their kinds of messages.
    pub sums: (Ledger, Kinds),
    /// Its notes.
    pub notes: Notes,
    /// Its messages.
    pub messages: u64,
    /// See [`Outcome`](super::Outcome).
    pub others: Others,
    /// See [`Outcome`](super::Outcome).
    pub unmatched_ports: BTreeMap<(&'static str, u16), (u64, u64)>,
    /// How tshark failed.
    pub failure: Option<Failure>,
}

/// What a second half is to do.
pub struct Duty<'s> {
    /// The user's choices.
    pub options: &'s Options,
    /// Names of the inputs.
    pub files: Vec<Arc<str>>,
    /// Its part of the sessions.
    pub part: Part,
    /// Links publications, where there are other parts.
    pub linker: Option<&'s Mutex<Linker>>,
}

impl<'s> Back<'s> {
    /// A second half at the start of a capture.
    pub fn new(duty: Duty<'s>, sink: &'s mut dyn Sink, pdml: Option<Pdml>) -> Self {
        let Duty { options, files, part, linker } = duty;
        let message = Message { wants_secrets: options.show_secrets, ..Message::default() };
        let mut rooms = Rooms::new(options, files, sink, part);
        if linker.is_some() {
            rooms.exchanges.link_later();
        }
        Self {
            rooms,
            streams: Arena::default(),
            conversations: Arena::default(),
            message,
            group_requests: FxHashMap::default(),
            connection_ids: ConnectionIds::default(),
            unmatched: BTreeMap::new(),
            others: Others::new(),
            keep_bytes: if options.wants_messages { KEEP_MOST } else { KEEP_FOR_SUMS },
            pdml,
            part,
            linker,
        }
    }

    /// Number of its part.
    pub const fn part(&self) -> u32 {
        self.part.index()
    }

    /// Whether nobody takes rows any more.
    pub fn is_closed(&self) -> bool {
        self.rooms.sink.is_closed()
    }

    /// Takes its part of a batch of packets.
    pub fn take(&mut self, batch: &Batch) {
        let part = self.part.index();
        for group in batch.places(part).chunks(GROUP) {
            let packets = batch.packets(group);
            if self.streams.len() > IN_CACHE {
                self.touch(packets.clone().map(|(arrival, _)| arrival));
            }
            for (arrival, bytes) in packets {
                if !self.is_filtered_out(arrival) {
                    self.packet(arrival, bytes);
                }
            }
        }
        for refused in batch.refused(part) {
            if let Some(known) = self.streams.get(refused.seat.place).and_then(|stream| stream.known) {
                self.rooms.notes.add(note::REFUSED, Some(known.session), refused.file, refused.frame, || refused.why.to_owned());
            }
        }
        if part == 0 {
            self.rooms.options.frame.store(batch.frame, Ordering::Relaxed);
        }
        self.link(batch.until);
    }

    /// Hands over what is to be linked with what other parts have, of packets before number `until`.
    fn link(&mut self, until: u64) {
        let Some(mut linker) = self.linker.and_then(|linker| linker.lock().ok()) else { return };
        let events = linker.hand_in(self.part, &mut self.rooms.exchanges, until);
        drop(linker);
        events.iter().for_each(|event| self.rooms.books.event(event, Side::Server));
    }

    /// Whether a frame does not pass tshark's display filter. Its stream keeps its number.
    #[inline]
    fn is_filtered_out(&mut self, arrival: &Arrival) -> bool {
        let Arrival { packet, seat, order, .. } = arrival;
        let Self { pdml: Some(pdml), rooms, streams, others, .. } = self else { return false };
        if !rooms.options.is_filtered || pdml.at(packet.frame).is_some() {
            return false;
        }
        if let Some(index) = seat.opens {
            streams.add(|_| Stream::new(index, *order, packet));
        }
        let (frames, bytes) = others.entry("filtered").or_default();
        *frames += u64::from(packet.frames());
        *bytes += without_message(&packet.headers, u64::from(packet.payload_bytes)).iter().sum::<u64>();
        true
    }

    #[inline(always)]
    fn packet(&mut self, arrival: &Arrival, bytes: &[u8]) {
        let Arrival { packet, seat, digest, order, .. } = arrival;
        self.rooms.exchanges.set_order(*order);
        if let Some(index) = seat.opens {
            self.streams.add(|_| Stream::new(index, *order, packet));
        }
        let Some(stream) = self.streams.get_mut(seat.place) else { return };
        let from = stream.side(*seat);
        if stream.is_copy(packet, from, *digest) {
            return self.copy(packet, seat.place, from, Why::CapturedTwice, note::CAPTURED_TWICE);
        }
        if packet.is_sent_again {
            return self.copy(packet, seat.place, from, Why::LinkRetransmission, note::LINK_RETRANSMISSION);
        }
        match packet.transport {
            Transport::Udp => self.udp(packet, *seat, from, bytes),
            Transport::Tcp(header) => self.tcp(packet, *seat, from, &header, bytes),
        }
    }

    /// Counts a copy of a packet before, that the capture took or the link layer sent.
    fn copy(&mut self, packet: &Packet, place: u32, from: Side, why: Why, note: NoteKind) {
        self.control(packet, place, from, why);
        if let Some(known) = self.streams.get(place).and_then(|stream| stream.known) {
            self.rooms.notes.add(note, Some(known.session), packet.file, packet.frame, String::new);
        }
    }

    /// Counts a packet without a message.
    #[inline]
    fn control(&mut self, packet: &Packet, place: u32, from: Side, why: Why) {
        let parts = without_message(&packet.headers, packet.payload_bytes);
        let Some(stream) = self.streams.get_mut(place) else { return };
        if let Some(Known { session, .. }) = stream.known {
            let control = Control { parts, frames: packet.frames(), frame: packet.frame, time_ns: packet.time_ns, why };
            return self.rooms.books.of(session).into_iter().for_each(|session| session.control(from, &control));
        }
        if let Some(waiting) = stream.waiting.get_or_insert_default().get_mut(from.index()) {
            add(&mut waiting.parts, &parts);
            waiting.unparsed_bytes += if why == Why::Empty { packet.payload_bytes.into() } else { 0 };
            waiting.frames += u64::from(packet.frames());
            waiting.retransmissions += u64::from(why == Why::Retransmission);
            waiting.captured_twice += u64::from(why == Why::CapturedTwice);
            waiting.link_retransmissions += u64::from(why == Why::LinkRetransmission);
        }
    }

    fn udp(&mut self, packet: &Packet, seat: Seat, from: Side, bytes: &[u8]) {
        let place = seat.place;
        if packet.payload_bytes == 0 {
            return self.control(packet, place, from, Why::Empty);
        }
        let Some(at) = self.conversation(packet, seat, true, bytes) else { return self.control(packet, place, from, Why::Empty) };
        self.look_inside(packet, at);
        self.talk(packet, seat, at, |_, talk| datagram(&mut talk.cutter, packet.whole(), bytes, &mut talk.desk));
        self.note_connection_id(packet, seat, at, bytes);
        if std::mem::take(&mut self.rooms.begins_anew) {
            self.close_inside(at);
            self.look_inside(packet, at);
        }
        self.open_sealed(packet, place, at);
    }

    fn tcp(&mut self, packet: &Packet, seat: Seat, from: Side, header: &TcpHeader, bytes: &[u8]) {
        let place = seat.place;
        let is_again = self.watch_tcp(packet, place, from, header);
        // what a RST says is no byte of the stream (RFC 9293 §3.5.3)
        let has_bytes = packet.payload_bytes > 0 && !header.has(TcpHeader::RST);
        if !has_bytes {
            self.control(packet, place, from, if is_again { Why::Retransmission } else { Why::Empty });
        }
        // data in a SYN (TCP Fast Open, RFC 7413) stands behind the SYN's own sequence number
        let sequence = header.sequence.wrapping_add(u32::from(header.has(TcpHeader::SYN)));
        let tells_end = packet.payload_bytes == 0 && header.has(TcpHeader::FIN) && !header.has(TcpHeader::RST | TcpHeader::SYN);
        let Some(at) = self.conversation(packet, seat, has_bytes, bytes) else {
            if has_bytes {
                self.pass_over(packet, place, from, sequence, bytes);
            }
            return;
        };
        self.look_inside(packet, at);
        self.talk(packet, seat, at, |halves, talk| {
            if header.has(TcpHeader::ACK) {
                talk.acknowledge(halves, header, packet);
            }
            if has_bytes || tells_end {
                talk.segment(halves, sequence, packet, bytes);
            } else if header.has(TcpHeader::RST) {
                talk.reset(halves, sequence, packet);
            }
        });
        self.open_sealed(packet, place, at);
    }

    /// A segment of a stream whose protocol is not known (yet): if it is found out later, decoding begins behind what is in order by then.
    fn pass_over(&mut self, packet: &Packet, place: u32, from: Side, sequence: u32, bytes: &[u8]) {
        let Some(stream) = self.streams.get_mut(place) else { return };
        let Some(waiting) = stream.waiting.get_or_insert_default().get_mut(from.index()) else { return };
        let Some(half) = stream.tcp.get_mut(from.index()) else { return };
        waiting.frames += u64::from(packet.frames() - 1); // those of earlier fragments; the segment itself counts where it is passed on
        let mut is_passed_over = half.is_passed_over;
        half.reassembly.segment(sequence, packet.whole(), bytes, &mut |delivery| is_passed_over |= wait(waiting, &delivery));
        half.is_passed_over = is_passed_over;
    }

    /// Watches TCP's own opening, end and acknowledgements. Returns whether the packet opens or ends its direction once more.
    #[inline]
    fn watch_tcp(&mut self, packet: &Packet, place: u32, from: Side, header: &TcpHeader) -> bool {
        let Some(stream) = self.streams.get_mut(place) else { return false };
        let is_again = stream.is_again(packet, from, header);
        let Some((timing, time_ns)) = stream.watch(packet, from, header) else { return is_again };
        if let Some(Known { session, .. }) = stream.known {
            self.rooms.books.event(&Event::Sample { session, sample: stream.sample(timing, time_ns) }, from);
        } else if timing == Timing::TcpHandshake {
            stream.handshake_ns = Some(time_ns);
        }
        is_again
    }

    /// The stream's conversation, begun where bytes, if it has some, show which protocol it speaks.
    #[inline(always)]
    fn conversation(&mut self, packet: &Packet, seat: Seat, has_bytes: bool, bytes: &[u8]) -> Option<u32> {
        let known = self.streams.get(seat.place)?.known;
        if known.is_some() || !has_bytes {
            return known.map(|known| known.conversation);
        }
        self.find_conversation(packet, seat.place, bytes)
    }

    #[cold]
    fn find_conversation(&mut self, packet: &Packet, place: u32, bytes: &[u8]) -> Option<u32> {
        let stream = self.streams.get_mut(place)?;
        if let (Some(&group), Transport::Udp) = (self.group_requests.get(&packet.destination), packet.transport) {
            let conversation = self.conversations.get_mut(group)?;
            conversation.members = conversation.members.saturating_add(1);
            stream.join(group, conversation.session, conversation.members, packet, Side::Server);
            return Some(group);
        }
        if stream.is_left_alone(packet) {
            return None;
        }
        if let (Transport::Udp, Some(at)) = (packet.transport, self.moved(packet, place, bytes)) {
            return Some(at);
        }
        let (protocol, found_by) = self.streams.get_mut(place)?.choose(self.rooms.options, packet, bytes)?;
        Some(self.open_conversation(packet, place, protocol, found_by))
    }

    fn open_conversation(&mut self, packet: &Packet, place: u32, protocol: &'static Protocol, found_by: FoundBy) -> u32 {
        let file = self.rooms.file(packet.file);
        let Some(stream) = self.streams.get_mut(place) else { return place };
        stream.decide_sides(|port| is_server_port(&self.rooms.options.decode_as, protocol, port));
        let order = self.rooms.exchanges.order();
        let session = self.rooms.books.begin(&stream.begins(packet, order, protocol, found_by, file));
        let mut note = |kind, detail: String| self.rooms.notes.add(kind, Some(session), packet.file, packet.frame, || detail);
        if found_by == FoundBy::Heuristic {
            note(note::HEURISTIC, format!("{} on port {}", protocol.name, stream.ends.server.port));
        }
        if !stream.is_from_start() && matches!(packet.transport, Transport::Tcp(_)) {
            note(note::MID_STREAM, String::new());
        }
        let halves = stream.halves();
        let decoder = (protocol.decoder)(&self.rooms.options.decoding);
        let pairing = (protocol.pairing)();
        let (members, told, inside) = (0, None, Inside::default());
        let conversation = self.conversations.add(|_| Conversation { protocol, decoder, pairing, told, inside, halves, session, members });
        stream.speak(conversation, session, 0);
        if stream.is_multicast {
            self.group_requests.insert(packet.source, conversation);
        }
        self.hand_over_waiting(place, session);
        conversation
    }

    /// What came before the session belongs to it too.
    fn hand_over_waiting(&mut self, place: u32, session: u32) {
        let Some(stream) = self.streams.get_mut(place) else { return };
        let books = &mut self.rooms.books;
        for (from, waiting) in [Side::Client, Side::Server].into_iter().zip(*stream.waiting.take().unwrap_or_default()) {
            books.of(session).into_iter().for_each(|session| session.before(from, &waiting));
            if waiting.unparsed_bytes > 0 {
                let (file, frame) = (stream.last_file, stream.frame_first);
                self.rooms.notes.add_bytes(note::UNPARSED, Some(session), file, frame, waiting.unparsed_bytes);
            }
        }
        if let Some(time_ns) = stream.handshake_ns {
            books.event(&Event::Sample { session, sample: stream.sample(Timing::TcpHandshake, time_ns) }, Side::Client);
        }
    }

    /// Lets a packet's bytes be taken with the stream's TCP halves and a place at the rooms.
    #[inline]
    fn talk(&mut self, packet: &Packet, seat: Seat, at: u32, take: impl FnOnce(&mut [TcpHalf; 2], &mut Talk<'_, 's>)) {
        let Self { rooms, streams, conversations, message, keep_bytes, pdml, .. } = self;
        let (Some(stream), Some(conversation)) = (streams.get_mut(seat.place), conversations.get_mut(at)) else { return };
        let Some(known) = stream.known else { return };
        let (from, now) = (stream.side(seat), (packet.frame, packet.time_ns));
        let (desk, tools) = conversation.seated(rooms, &stream.ends, known, packet.file);
        let desk = Desk {
            earlier_frames: packet.earlier_frames.as_deref().unwrap_or(&[]),
            has_inside: tools.inside.is_known(),
            contents: pdml.as_mut().and_then(|pdml| pdml.at(packet.frame)),
            ..desk
        };
        let cutter = cutter(tools.decoder, message, &desk, from, now, *keep_bytes);
        take(&mut stream.tcp, &mut Talk { desk, cutter, halves: tools.halves });
    }

    /// The capture has ended: what is unfinished is given up, what is open is closed.
    #[must_use]
    pub fn finish(mut self) -> Closed {
        for place in 0..u32::try_from(self.streams.len()).unwrap_or(u32::MAX) {
            self.finish_stream(place);
        }
        for conversation in self.conversations.iter_mut() {
            conversation.pairing.end(&mut self.rooms.exchanges);
            conversation.inside.end(&mut self.rooms.exchanges);
        }
        self.rooms.exchanges.finish();
        self.rooms.take_events();
        self.link(u64::MAX);
        free_later((self.streams, self.conversations, self.rooms.exchanges));
        Closed {
            begun: self.rooms.books.begun(),
            sums: self.rooms.books.close(),
            notes: self.rooms.notes,
            messages: self.rooms.messages,
            others: self.others,
            unmatched_ports: self.unmatched,
            failure: self.pdml.and_then(Pdml::failure),
        }
    }

    fn finish_stream(&mut self, place: u32) {
        let Self { rooms, streams, conversations, message, keep_bytes, .. } = self;
        let Some(stream) = streams.get_mut(place) else { return };
        let talks = stream.known.and_then(|known| Some((known, conversations.get_mut(known.conversation)?)));
        let Some((known, conversation)) = talks else { return self.leave_alone(place) };
        rooms.exchanges.set_order(BEHIND_ALL + stream.order);
        let now = (stream.last_frame, stream.last_time_ns);
        for from in [Side::Client, Side::Server] {
            let (desk, tools) = conversation.seated(rooms, &stream.ends, known, stream.last_file);
            let cutter = cutter(tools.decoder, message, &desk, from, now, *keep_bytes);
            Talk { desk, cutter, halves: tools.halves }.finish(&mut stream.tcp);
        }
        let (mut desk, tools) = conversation.seated(rooms, &stream.ends, known, stream.last_file);
        tools.inside.finish(&mut desk, *keep_bytes);
        rooms.books.of(known.session).into_iter().for_each(|session| session.end_of_stream(now.0, now.1));
    }

    /// Tells of a stream with bytes whose port speaks for a protocol that they are not.
    fn note_unlike_port(&mut self, place: u32) {
        let Some(Stream { tries: 1.., ends, last_file, last_frame, .. }) = self.streams.get(place) else { return };
        let names = expected(&self.rooms.options.decode_as, ends.transport == "tcp", [ends.client.port, ends.server.port]);
        if names.is_empty() {
            return;
        }
        let detail = format!("no {} between {} ports {} and {}", names.join(" or "), ends.transport, ends.client.port, ends.server.port);
        self.rooms.notes.take(Note::one(note::UNLIKE_PORT, None, *last_file, *last_frame, Detail::First(detail)));
    }

    /// A stream whose protocol was not found counts with the others.
    fn leave_alone(&mut self, place: u32) {
        let Some(stream) = self.streams.get_mut(place) else { return };
        stream.count_held();
        let frames: u64 = stream.waiting.iter().flat_map(|both| both.iter()).map(|waiting| waiting.frames).sum();
        let bytes: u64 = stream.waiting.iter().flat_map(|both| both.iter()).flat_map(|waiting| waiting.parts).sum();
        if frames == 0 {
            return;
        }
        let port = stream.ends.client.port.min(stream.ends.server.port);
        let sums =
            [self.unmatched.entry((stream.ends.transport, port)).or_default(), self.others.entry(stream.ends.transport).or_default()];
        for (frame_sum, byte_sum) in sums {
            *frame_sum += frames;
            *byte_sum += bytes;
        }
        self.note_unlike_port(place);
    }
}

/// What cuts bytes that `from` sent and that are there `now` into messages for a desk.
#[inline(always)]
fn cutter<'a>(
    decoder: &'a mut Box<dyn Decoder>,
    message: &'a mut Message,
    desk: &Desk<'a, '_>,
    from: Side,
    now: (u64, i64),
    keep_bytes: usize,
) -> Cutter<'a> {
    let options = desk.rooms.options;
    message.wants_text = options.wants_text_of(desk.session);
    let (wants_frames, earlier_frames) = (options.wants_messages_of(desk.session), desk.earlier_frames);
    Cutter { decoder, message, from, now, is_behind_gap: false, keep_bytes, wants_frames, earlier_frames }
}
