//! Conversations inside a conversation: what the records of a security protocol carry, once they are opened, and what the frames of WebSockets do.
//!
//! A record that was opened is no message of its own: what it adds to its content is the content's security bytes, as its frame's headers are its IP
//! bytes; what a WebSocket's frame adds are header bytes. So the inner protocol's messages are cut from contents as others are from segments, and their parts add up to the frames as well.

use super::super::desk::Desk;
use super::super::Options;
use super::{cutter, Back};
use crate::exchanges::Exchanges;
use crate::message::{Message, Side};
use crate::packet::{Headers, Packet};
use crate::pdml::Source;
use crate::protocols::framing::{datagram, Half};
use crate::protocols::{by_row, choose_inside, Carrier, Decoder, Pairing, Protocol};
use crate::span::Origin;
use std::collections::VecDeque;
use std::num::NonZeroU16;

/// What is known of the inside of a conversation.
#[derive(Default)]
pub(super) struct Inside {
    /// None where nothing was opened yet; none within where what was opened is of no protocol that is decoded.
    opened: Option<Box<Option<Inner>>>,
}

/// A conversation inside a conversation, in the same session.
pub(super) struct Inner {
    protocol: &'static Protocol,
    decoder: Box<dyn Decoder>,
    pairing: Box<dyn Pairing>,
    halves: [Half; 2],
    message: Message,
    waiting: [Waiting; 2],
    inside: Inside,
}

/// What an inner conversation cuts messages with.
struct Inmost<'a> {
    decoder: &'a mut Box<dyn Decoder>,
    halves: &'a mut [Half; 2],
    message: &'a mut Message,
}

/// What was passed on already of messages that several records carry: each comes whole once more when its last record is there. The last one is open;
/// behind each of the others its record went on with what is complete.
#[derive(Debug, Default)]
struct Waiting(VecDeque<Vec<u8>>);

/// A record that was opened, or another message that carries some.
pub struct Sealed {
    message: Message,
    from: Side,
}

impl Sealed {
    /// A record to be opened when its frame is done with.
    #[must_use]
    pub fn new(message: &Message, from: Side) -> Self {
        Self { message: message.clone(), from }
    }

    fn own_bytes(&self) -> u32 {
        let row = &self.message.row;
        row.security_bytes + row.header_bytes + row.option_bytes + row.payload_bytes + row.opaque_bytes
    }

    /// The most content that it can have: its plaintext without padding, where the cipher suite is known.
    fn most(&self) -> u32 {
        self.message.plaintext_bytes.unwrap_or(self.message.fragment_bytes).min(self.message.fragment_bytes)
    }

    /// Where its content comes from: all else that it is made of are headers of the content.
    fn origin(&self, content_bytes: u32, file: u16) -> Origin {
        let row = &self.message.row;
        let compressed_bytes = row.uncompressed_bytes.map(|_| row.payload_bytes);
        let around = self.own_bytes() - compressed_bytes.unwrap_or(content_bytes);
        let carrier_bytes = if self.message.carries.is_some() { around - row.security_bytes } else { 0 };
        let security_bytes = around - carrier_bytes;
        let headers = Headers {
            link_bytes: row.link_bytes,
            padding_bytes: row.padding_bytes,
            ip_bytes: row.ip_bytes,
            transport_bytes: row.transport_bytes,
            security_bytes,
            carrier_bytes,
            compressed_bytes: compressed_bytes.unwrap_or(0),
        };
        Origin {
            frame: row.frame_last,
            frame_first: row.frame_first,
            file,
            ip_identification: row.ip_identification.and_then(NonZeroU16::new),
            time_ns: row.time_last_ns,
            time_first_ns: row.time_first_ns,
            headers,
            payload_bytes: content_bytes,
        }
    }
}

impl Waiting {
    /// What the records of a frame hold, in their order; `sources` lists the records that have a part of a message before all others.
    fn unite(&mut self, sources: &[Source], records: usize) -> Vec<u8> {
        let parts: Vec<&Source> = sources.iter().filter(|source| source.record > 0).collect();
        let mut others: VecDeque<&Source> = sources.iter().filter(|source| source.record == 0).collect();
        let last = parts.iter().map(|part| part.record).max().unwrap_or(0);
        let mut all = Vec::new();
        for number in 1..=records.max(last) {
            match parts.iter().find(|part| part.record == number) {
                Some(part) => {
                    self.pass(part);
                    all.extend_from_slice(&part.bytes);
                }
                None => all.extend_from_slice(self.next_of(&mut others)),
            }
        }
        while !others.is_empty() {
            all.extend_from_slice(self.next_of(&mut others));
        }
        self.0.drain(..self.0.len().saturating_sub(1));
        all
    }

    /// Remembers what is passed on of a message that is not complete.
    fn pass(&mut self, part: &Source) {
        let (before, begun) = part.bytes.split_at_checked(part.bytes.len().saturating_sub(part.waiting)).unwrap_or((&[], &[]));
        match self.0.back_mut() {
            Some(open) if before.is_empty() => return open.extend_from_slice(begun),
            Some(open) => open.extend_from_slice(before),
            None => {}
        }
        self.0.push_back(begun.to_vec());
    }

    /// The new bytes of the next source that has some.
    fn next_of<'a>(&mut self, sources: &mut VecDeque<&'a Source>) -> &'a [u8] {
        while let Some(source) = sources.pop_front() {
            let new = self.add(&source.bytes);
            if new.is_empty() {
                continue;
            }
            let (_, begun) = new.split_at(new.len() - source.waiting.min(new.len()));
            self.0.extend(Some(begun.to_vec()).filter(|begun| !begun.is_empty()));
            return new;
        }
        &[]
    }

    /// What a source adds to those before it: nothing where it is a message of which all was passed on.
    fn add<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        while let Some(first) = self.0.front_mut() {
            if first.starts_with(bytes) {
                first.drain(..bytes.len());
                if first.is_empty() {
                    self.0.pop_front();
                }
                return &[];
            }
            let new = bytes.strip_prefix(first.as_slice()).filter(|_| !first.is_empty());
            self.0.pop_front();
            if let Some(new) = new {
                return new;
            }
        }
        bytes
    }
}

/// How much of `content` each of several records has, of which each has room for so much. Where there is less than room, all pad alike, or else the
/// last ones.
fn divide(content: u32, rooms: &[u32]) -> Vec<u32> {
    let spare = rooms.iter().sum::<u32>().saturating_sub(content);
    let count = u32::try_from(rooms.len()).unwrap_or(1).max(1);
    if spare % count == 0 && rooms.iter().all(|&room| room >= spare / count) {
        return rooms.iter().map(|room| room - spare / count).collect();
    }
    let mut left = content;
    rooms
        .iter()
        .map(|&room| {
            let mine = room.min(left);
            left -= mine;
            mine
        })
        .collect()
}

impl Inside {
    /// A conversation in `protocol`, begun.
    fn begin(protocol: &'static Protocol, options: &Options) -> Self {
        let message = Message { wants_secrets: options.show_secrets, ..Message::default() };
        let inner = Inner {
            protocol,
            decoder: (protocol.decoder)(&options.decoding),
            pairing: (protocol.pairing)(),
            halves: Default::default(),
            message,
            waiting: Default::default(),
            inside: Self::default(),
        };
        Self { opened: Some(Box::new(Some(inner))) }
    }

    /// Of no protocol that is decoded.
    fn unknown() -> Self {
        Self { opened: Some(Box::new(None)) }
    }

    /// Whether its protocol is decoded.
    #[inline]
    pub(super) fn is_known(&self) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.is_some())
    }

    fn inner(&mut self) -> Option<&mut Inner> {
        self.opened.as_mut()?.as_mut().as_mut()
    }

    /// Cuts what messages carry that were set aside, and what is inside of that.
    fn cut(&mut self, outer: &mut Desk<'_, '_>, sealed: &[Sealed], sources: &[Source], keep_bytes: usize) {
        let carries = sealed.first().and_then(|first| first.message.carries);
        if let (None, Some(protocol)) = (&self.opened, carries.and_then(by_row)) {
            *self = Self::begin(protocol, outer.rooms.options);
            outer.rooms.books.of(outer.session).into_iter().for_each(|session| session.carries(protocol.name, false));
        }
        let Some(inner) = self.inner() else { return };
        let contents = inner.contents(sealed, sources);
        for (record, content) in sealed.iter().zip(&contents) {
            inner.cut_one(outer, record, content, keep_bytes);
            let nested = std::mem::take(&mut outer.rooms.sealed);
            if !nested.is_empty() {
                inner.inside.cut(outer, &nested, &[], keep_bytes);
            }
        }
    }

    /// What carries the inner conversations has ended: what its last messages carry is cut, and unfinished messages inside are given up.
    pub(super) fn finish(&mut self, outer: &mut Desk<'_, '_>, keep_bytes: usize) {
        let sealed = std::mem::take(&mut outer.rooms.sealed);
        if !sealed.is_empty() {
            self.cut(outer, &sealed, &[], keep_bytes);
        }
        let Some(inner) = self.inner() else { return };
        inner.inside.finish(outer, keep_bytes);
        let (mut desk, tools) = inner.seated(outer, &[]);
        for (half, from) in tools.halves.iter_mut().zip([Side::Client, Side::Server]) {
            half.finish(from, &mut desk);
        }
    }

    /// The capture ends: what is open in the inner conversations is closed.
    pub(super) fn end(&mut self, exchanges: &mut Exchanges) {
        if let Some(inner) = self.inner() {
            inner.inside.end(exchanges);
            inner.pairing.end(exchanges);
        }
    }
}

impl Inner {
    /// The content of each message that was set aside: its own, or its share of what tshark opened in the frame.
    fn contents(&mut self, sealed: &[Sealed], sources: &[Source]) -> Vec<Vec<u8>> {
        if sealed.iter().any(|record| record.message.carries.is_some()) {
            return sealed.iter().map(|record| record.message.content.clone()).collect();
        }
        let side = sealed.first().map_or(0, |record| record.from.index());
        let waiting = self.waiting.get_mut(side);
        let all = waiting.map_or_else(Vec::new, |waiting| waiting.unite(sources, sealed.len()));
        let rooms: Vec<u32> = sealed.iter().map(Sealed::most).collect();
        let mut rest: &[u8] = &all;
        divide(bytes_of(&all), &rooms)
            .into_iter()
            .map(|share| {
                let (mine, after) = rest.split_at_checked(share as usize).unwrap_or((rest, &[]));
                rest = after;
                mine.to_vec()
            })
            .collect()
    }

    /// Its place at the rooms, in that of the conversation around it.
    fn seated<'a, 's>(&'a mut self, outer: &'a mut Desk<'_, 's>, earlier_frames: &'a [u64]) -> (Desk<'a, 's>, Inmost<'a>) {
        let Self { protocol, decoder, pairing, halves, message, .. } = self;
        let desk = Desk {
            rooms: outer.rooms,
            told: outer.told,
            pairing,
            protocol,
            has_inside: false,
            contents: None,
            opened: 0,
            earlier_frames,
            ..*outer
        };
        (desk, Inmost { decoder, halves, message })
    }

    fn cut_one(&mut self, outer: &mut Desk<'_, '_>, record: &Sealed, content: &[u8], keep_bytes: usize) {
        let origin = record.origin(bytes_of(content), outer.file);
        let piece = origin.whole();
        if content.is_empty() {
            return outer.empty_record(record.from, piece);
        }
        let carrier = self.protocol.carrier;
        let now = (record.message.row.frame, record.message.row.time_ns);
        let (mut desk, Inmost { decoder, halves, message }) = self.seated(outer, &record.message.row.frames);
        let mut cutter = cutter(decoder, message, &desk, record.from, now, keep_bytes);
        match (carrier, halves.get_mut(record.from.index())) {
            (Carrier::Stream, Some(half)) => {
                if record.message.row.is_after_gap {
                    half.interrupt(&mut cutter, &mut desk);
                }
                half.chunk(&mut cutter, piece, content, &mut desk);
            }
            _ => datagram(&mut cutter, piece, content, &mut desk),
        }
    }
}

fn bytes_of(content: &[u8]) -> u32 {
    u32::try_from(content.len()).unwrap_or(u32::MAX)
}

impl Back<'_> {
    /// Finds out what a conversation carries, where something of it is opened for the first time.
    #[inline(always)]
    pub(super) fn look_inside(&mut self, packet: &Packet, at: u32) {
        if self.pdml.is_some() {
            self.begin_inside(packet, at);
        }
    }

    fn begin_inside(&mut self, packet: &Packet, at: u32) {
        let Self { rooms, conversations, pdml: Some(pdml), .. } = self else { return };
        let Some(conversation) = conversations.get_mut(at).filter(|conversation| conversation.inside.opened.is_none()) else {
            return;
        };
        let Some(source) = pdml.at(packet.frame).and_then(|contents| contents.sources.first()) else { return };
        let ports = [packet.source.port, packet.destination.port];
        let Some(protocol) = choose_inside(conversation.protocol, ports, &source.bytes) else {
            conversation.inside = Inside::unknown();
            return;
        };
        conversation.inside = Inside::begin(protocol, rooms.options);
        rooms.books.of(conversation.session).into_iter().for_each(|session| session.carries(protocol.name, true));
    }

    /// Another connection has begun between the same ports: what the last one carried is over.
    pub(super) fn close_inside(&mut self, at: u32) {
        let Self { rooms, conversations, .. } = self;
        if let Some(conversation) = conversations.get_mut(at) {
            std::mem::take(&mut conversation.inside).end(&mut rooms.exchanges);
        }
    }

    /// Cuts what the messages carry that were set aside while the packet was cut.
    #[inline(always)]
    pub(super) fn open_sealed(&mut self, packet: &Packet, place: u32, at: u32) {
        if !self.rooms.sealed.is_empty() {
            self.cut_sealed(packet, place, at);
        }
    }

    fn cut_sealed(&mut self, packet: &Packet, place: u32, at: u32) {
        let sealed = std::mem::take(&mut self.rooms.sealed);
        let Self { rooms, streams, conversations, keep_bytes, pdml, .. } = self;
        let (Some(stream), Some(conversation)) = (streams.get(place), conversations.get_mut(at)) else { return };
        let sources = pdml.as_mut().and_then(|pdml| pdml.at(packet.frame)).map_or(&[][..], |contents| &contents.sources);
        let Some(known) = stream.known else { return };
        let (mut desk, tools) = conversation.seated(rooms, &stream.ends, known, packet.file);
        tools.inside.cut(&mut desk, &sealed, sources, *keep_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn united(waiting: &mut Waiting, records: usize, sources: &[(&[u8], usize, usize)]) -> String {
        let source = |&(bytes, waiting, record): &(&[u8], usize, usize)| Source { bytes: bytes.to_vec(), waiting, record };
        let sources: Vec<Source> = sources.iter().map(source).collect();
        String::from_utf8(waiting.unite(&sources, records)).unwrap()
    }

    #[test]
    fn a_message_over_three_records_adds_each_byte_once() {
        let mut waiting = Waiting::default();
        assert_eq!("PUBabc", united(&mut waiting, 1, &[(b"PUBabc", 3, 1)]));
        assert_eq!("def", united(&mut waiting, 1, &[(b"def", 3, 1)]));
        // the last record may be listed or not
        assert_eq!("ghi", united(&mut waiting, 1, &[(b"abcdefghi", 0, 0)]));
        assert_eq!("head", united(&mut waiting, 1, &[(b"head", 4, 1)]));
        assert_eq!("body", united(&mut waiting, 1, &[(b"body", 4, 1), (b"headbody", 0, 0)]));
        assert_eq!("next", united(&mut waiting, 1, &[(b"next", 0, 0)]));
    }

    #[test]
    fn several_messages_over_records_in_one_frame_add_each_byte_once() {
        let mut waiting = Waiting::default();
        // one message a record, then AB in two records, CD in two
        let parts: [(&[u8], usize, usize); 4] = [(b"aa", 2, 2), (b"bb", 2, 3), (b"cc", 2, 5), (b"dd", 2, 6)];
        let wholes: [(&[u8], usize, usize); 4] = [(b"one", 0, 0), (b"aabb", 0, 0), (b"two", 0, 0), (b"ccdd", 0, 0)];
        assert_eq!("oneaabbtwoccdd", united(&mut waiting, 6, &[parts, wholes].concat()));
        // the second record ends one, holds another and begins a third, whose end comes in the next frame with all of a fourth
        assert_eq!("x1x2yz1", united(&mut waiting, 2, &[(b"x1", 2, 1), (b"x2yz1", 2, 2), (b"x1x2", 0, 0)]));
        assert_eq!("z2end", united(&mut waiting, 2, &[(b"z2", 2, 1), (b"z1z2", 0, 0), (b"end", 0, 0)]));
    }

    #[test]
    fn records_share_a_content_by_their_room_and_pad_alike_or_at_the_end() {
        assert_eq!(vec![34], divide(34, &[50]));
        assert_eq!(vec![10, 20], divide(30, &[10, 20]));
        assert_eq!(vec![18, 18], divide(36, &[34, 34]));
        assert_eq!(vec![10, 5], divide(15, &[10, 20]));
    }
}
