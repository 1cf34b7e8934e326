//! Where a conversation's messages arrive: they are placed in exchanges, counted in sessions and handed to the sinks.

use super::back::{Ends, Sealed};
use super::books::Books;
use super::{Options, Sink};
use crate::exchanges::{Exchange, Exchanges, Moment, Placement};
use crate::message::{Message, Side};
use crate::note::{self, Notes};
use crate::packet::Headers;
use crate::pdml::Contents;
use crate::protocols::framing::{Receiver, Remainder};
use crate::protocols::{show_hidden, show_inner, Decoder, Pairing, Protocol};
use crate::schema::exchanges::Row as ExchangeRow;
use crate::sessions::{without_message, Count, FieldSection, Kind, Words};
use crate::share::Part;
use crate::span::Piece;
use std::sync::Arc;

/// What all conversations share.
pub struct Rooms<'s> {
    /// The user's choices.
    pub options: &'s Options,
    /// Open exchanges.
    pub exchanges: Exchanges,
    /// Sums.
    pub books: Books,
    /// Notes of the second half.
    pub notes: Notes,
    /// Who takes rows.
    pub sink: &'s mut dyn Sink,
    /// Names of the inputs.
    pub files: Vec<Arc<str>>,
    /// Messages so far.
    pub messages: u64,
    /// Records that were opened, until their frame is done with.
    pub sealed: Vec<Sealed>,
    /// Whether another connection has begun between the same ports.
    pub begins_anew: bool,
}

impl<'s> Rooms<'s> {
    /// Rooms with nothing in them.
    pub fn new(options: &'s Options, files: Vec<Arc<str>>, sink: &'s mut dyn Sink, part: Part) -> Self {
        let exchanges = Exchanges::new(options.wants_exchanges);
        let (books, notes) = (Books::new(options, part), Notes::default());
        Self { options, exchanges, books, notes, sink, files, messages: 0, sealed: Vec::new(), begins_anew: false }
    }

    /// The name of an input.
    pub fn file(&self, file: u16) -> Option<Arc<str>> {
        self.files.get(usize::from(file)).cloned()
    }

    /// Passes on what the exchanges have to report.
    pub fn take_events(&mut self) {
        for event in self.exchanges.take_events() {
            self.books.event(&event, Side::Client);
        }
        self.hand_over_ended();
    }

    /// Hands the exchanges that ended to whom wants their rows.
    #[inline(always)]
    fn hand_over_ended(&mut self) {
        if self.options.wants_exchanges {
            self.hand_over_rows();
        }
    }

    fn hand_over_rows(&mut self) {
        for exchange in self.exchanges.take_ended() {
            if self.options.shares(exchange.session) {
                let row = self.exchange_row(exchange);
                self.sink.exchange(&row);
            }
        }
    }

    fn exchange_row(&self, exchange: Exchange) -> ExchangeRow {
        let mut row = ExchangeRow {
            exchange: exchange.number,
            session: exchange.session,
            protocol: exchange.protocol,
            kind: exchange.kind,
            direction: exchange.from.map_or("", Side::direction),
            outcome: exchange.outcome,
            file: self.file(exchange.file),
            frame_first: exchange.frame_first,
            frame_last: exchange.frame_last,
            frame_ack: exchange.frame_ack,
            frame_response: exchange.frame_response,
            time_ns: exchange.time_ns,
            ack_rtt_ns: exchange.ack_rtt_ns,
            rtt_ns: exchange.rtt_ns,
            delay_ns: exchange.delay_ns,
            interval_ns: exchange.interval_ns,
            parent: exchange.parent,
            messages: exchange.messages,
            retransmissions: exchange.retransmissions,
            parts: exchange.parts,
            payload_bytes: exchange.payload_bytes,
            frame_bytes: exchange.frame_bytes,
            message_id: exchange.message_id,
            ..ExchangeRow::default()
        };
        if exchange.protocol == "coap" {
            row.token.set_hex(&exchange.token.bytes());
        }
        for (cell, text) in [(&mut row.resource, &exchange.resource), (&mut row.result, &exchange.result)] {
            if !text.is_empty() {
                cell.set(text);
            }
        }
        row
    }
}

/// One conversation's place at the rooms, while bytes of one packet are cut.
pub struct Desk<'a, 's> {
    /// What all share.
    pub rooms: &'a mut Rooms<'s>,
    /// The conversation's pairing.
    pub pairing: &'a mut Box<dyn Pairing>,
    /// The conversation's protocol.
    pub protocol: &'a mut &'static Protocol,
    /// Its session.
    pub session: u32,
    /// See [`Moment::member`].
    pub member: u16,
    /// Its stream.
    pub ends: &'a Ends,
    /// Which input the packet came from.
    pub file: u16,
    /// Frames of the packet's earlier fragments.
    pub earlier_frames: &'a [u64],
    /// The protocol version that its messages told last.
    pub told: &'a mut Option<&'static str>,
    /// Whether what its records carry is of a protocol that is decoded.
    pub has_inside: bool,
    /// What was opened in the packet.
    pub contents: Option<&'a Contents>,
    /// How many of its messages that are protected by themselves were met.
    pub opened: usize,
}

impl Desk<'_, '_> {
    fn note(&mut self, kind: note::NoteKind, frame: u64, detail: impl FnOnce() -> String) {
        self.rooms.notes.add(kind, Some(self.session), self.file, frame, detail);
    }

    /// A record that holds nothing.
    pub fn empty_record(&mut self, from: Side, piece: Piece<'_>) {
        self.leave_unassigned(from, &piece.headers, 0, 0);
    }

    fn leave_unassigned(&mut self, from: Side, headers: &Headers, bytes: u64, missing: u64) {
        if let Some(session) = self.rooms.books.of(self.session) {
            session.unassigned(from, &without_message(headers, bytes), missing);
        }
    }

    /// Puts a message down in the books. Returns whether it counts as data.
    #[inline]
    fn count(&mut self, message: &Message, placement: &Placement, from: Side) -> bool {
        let row = &message.row;
        let books = &mut self.rooms.books;
        if let Some(words) = Words::of(message, self.told) {
            books.of(self.session).into_iter().for_each(|session| session.tells(&words, from, self.protocol.is_security));
        }
        if let Some(section) = FieldSection::of(message, placement) {
            books.of(self.session).into_iter().for_each(|session| session.field_section(from, &section));
        }
        let kind = books.kind(Kind { protocol: row.protocol, kind: row.kind, variant: row.variant });
        let count = Count::new(message, kind, placement);
        let is_late = books.is_late(self.session, &count);
        let events = self.rooms.exchanges.take_events().filter(|event| !is_late || event.session() != self.session);
        events.for_each(|event| books.event(&event, from));
        books.message(self.session, from, &count)
    }

    /// Whether a record was opened.
    #[inline]
    fn is_opened(&self, message: &Message) -> bool {
        let Some(contents) = self.contents.filter(|contents| !contents.sources.is_empty()) else { return false };
        // a cipher suite without encryption (RFC 5246 A.5) protects too
        let is_protected = message.fragment_bytes > 0 && !message.facts.is_handshake;
        is_protected && contents.records.contains(&message.fragment_bytes)
    }

    /// What a record really is that looks like application data.
    fn unmask(&mut self, message: &mut Message) {
        let Some(contents) = self.contents else { return };
        if message.is_oscore {
            // by the ciphertext's length: one datagram holds one message, but a segment of TCP may hold several
            let inner = contents.inner.iter().skip(self.opened).find(|inner| inner.len() < message.opaque_bytes as usize);
            self.opened += 1;
            return inner.into_iter().for_each(|plaintext| show_inner(message, plaintext));
        }
        if !message.facts.is_encrypted {
            return;
        }
        let hidden = contents.hidden.iter().find(|(fragment_bytes, _)| *fragment_bytes == message.fragment_bytes);
        if let Some((_, content_type)) = hidden {
            show_hidden(message, *content_type);
        }
    }

    fn note_facts(&mut self, message: &Message) {
        let (facts, frame) = (&message.facts, message.frame);
        if let Some(fault) = message.malformed.get() {
            self.note(note::MALFORMED, frame, || fault.to_owned());
        }
        if facts.is_version_inferred {
            self.note(note::VERSION_UNKNOWN, frame, String::new);
        }
        if facts.is_compressed {
            self.note(note::COMPRESSED, frame, String::new);
        }
        if facts.is_ahead {
            self.note(note::AHEAD, frame, String::new);
        }
        if facts.is_alias_unknown {
            self.note(note::ALIAS_UNKNOWN, frame, String::new);
        }
        if facts.is_encrypted && !facts.is_handshake && message.opaque_bytes > 0 {
            let why = match self.rooms.options.tshark {
                Some(_) if self.is_opened(message) => "opened, but it holds no protocol that is decoded",
                Some(_) => "tshark opens it with no secret that was given",
                None => "",
            };
            self.note(note::ENCRYPTED, frame, || why.to_owned());
        }
    }

    #[inline]
    fn note_placement(&mut self, message: &Message, placement: &Placement) {
        if placement.is_of_earlier_connection {
            self.note(note::SENT_BEFORE, message.frame, String::new);
        }
        if placement.is_unmatched {
            self.note(note::UNMATCHED, message.frame, String::new);
        }
        if placement.is_refusal {
            self.note(note::NOT_ACCEPTED, message.frame, || message.result.map_or_else(String::new, |reason| format!("0x{reason:02x}")));
        }
    }

    fn hand_to_sink(&mut self, message: &mut Message, from: Side, placement: &Placement, bytes: &[u8]) {
        let row = &mut message.row;
        row.file = self.rooms.file(self.file);
        (row.transport, row.direction) = (self.ends.transport, from.direction());
        (row.session, row.stream) = (Some(self.session), self.ends.index);
        (row.exchange, row.is_retransmission) = (placement.exchange.map(|exchange| exchange.number), placement.is_retransmission);
        let (source, destination) = match from {
            Side::Client => (self.ends.client, self.ends.server),
            Side::Server => (self.ends.server, self.ends.client),
        };
        (message.row.source_address, message.row.source_port) = (source.address, source.port);
        (message.row.destination_address, message.row.destination_port) = (destination.address, destination.port);
        for &frame in self.earlier_frames {
            if !message.row.frames.contains(&frame) {
                message.row.frames.push(frame);
            }
        }
        message.row.frames.sort_unstable();
        if message.payload_bytes > 0 {
            let payload =
                if message.content.is_empty() { bytes.get(message.payload_range.clone()).unwrap_or(&[]) } else { &message.content };
            message.row.payload_hash = Some(fnv_1a(payload));
            message.row.payload = self.rooms.options.show_payload.then(|| payload.to_vec());
        }
        self.rooms.sink.message(&message.row);
    }
}

impl Receiver for Desk<'_, '_> {
    #[inline]
    fn message(&mut self, message: &mut Message, from: Side, bytes: &[u8]) {
        let Desk { session, member, file, .. } = *self;
        let moment = Moment { session, file, member, frame: message.frame, time_ns: message.time_ns };
        // what an opened record holds is counted instead, where it is of a protocol that is decoded
        if message.carries.is_some() || self.has_inside && self.is_opened(message) {
            self.pairing.place(message, from, &moment, &mut self.rooms.exchanges);
            return self.rooms.sealed.push(Sealed::new(message, from));
        }
        self.unmask(message);
        let row = &mut message.row;
        row.protocol = message.other_protocol.unwrap_or(self.protocol.name);
        let number = self.rooms.messages;
        self.rooms.messages += 1;
        let is_whole = row.malformed.get().is_none();
        let placement = if is_whole { self.pairing.place(message, from, &moment, &mut self.rooms.exchanges) } else { Placement::default() };
        let is_data = self.count(message, &placement, from);
        self.rooms.hand_over_ended();
        self.note_facts(message);
        self.note_placement(message, &placement);
        self.rooms.begins_anew |= message.facts.begins_anew;
        if self.rooms.options.wants_messages_of(self.session) {
            (message.row.message, message.row.is_data) = (number, is_data);
            self.hand_to_sink(message, from, &placement, bytes);
        }
    }

    fn unassigned(&mut self, remainder: &Remainder, from: Side) {
        let bytes = remainder.bytes + remainder.missing;
        self.rooms.notes.add_bytes(remainder.why, Some(self.session), self.file, remainder.frame, bytes);
        self.leave_unassigned(from, &remainder.headers, remainder.bytes, remainder.missing);
    }

    /// The session is the same.
    fn go_on_in(&mut self, protocol: &'static Protocol, decoder: &mut Box<dyn Decoder>) {
        let pairing = self.pairing.successor().unwrap_or_else(protocol.pairing);
        self.pairing.end(&mut self.rooms.exchanges);
        *self.protocol = protocol;
        *self.pairing = pairing;
        *decoder = decoder.successor().unwrap_or_else(|| (protocol.decoder)(&self.rooms.options.decoding));
    }
}

/// FNV-1a, 64 bit (RFC 9923 §5): the column `payload_hash`.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::fnv_1a;

    #[test]
    fn hashes_as_the_published_vectors() {
        // test vectors of the FNV reference code: "" and "a" and "foobar"
        assert_eq!([0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8], [fnv_1a(b""), fnv_1a(b"a"), fnv_1a(b"foobar")]);
    }
}
