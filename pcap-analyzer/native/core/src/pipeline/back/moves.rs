//! Peers whose address changes while they talk (a NAT's new binding, another network): a connection ID in their records tells whose they are
//! (RFC 9146 §6, RFC 9147 §9, RFC 9000 §9; trap 14).

use super::Back;
use crate::message::Side;
use crate::note;
use crate::packet::{Endpoint, Packet};
use crate::protocols::Protocol;
use crate::transport::Seat;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Who sends records with a connection ID.
#[derive(Debug, Clone, Copy)]
struct Peer {
    conversation: u32,
    from: Side,
    /// Where it was last seen.
    at: Endpoint,
}

/// The peers of an endpoint by the connection IDs that they send.
#[derive(Debug)]
struct Peers {
    protocol: &'static Protocol,
    by_id: FxHashMap<Box<[u8]>, Peer>,
    /// How long the IDs are: records do not tell.
    lengths: BTreeSet<usize>,
}

/// Peers by the endpoint that they send to.
#[derive(Debug, Default)]
pub(super) struct ConnectionIds(FxHashMap<Endpoint, Peers>);

impl ConnectionIds {
    fn note(&mut self, to: Endpoint, protocol: &'static Protocol, id: &[u8], peer: Peer) {
        let new = || Peers { protocol, by_id: FxHashMap::default(), lengths: BTreeSet::new() };
        let peers = self.0.entry(to).or_insert_with(new);
        if let Some(known) = peers.by_id.get_mut(id) {
            *known = peer;
            return;
        }
        peers.by_id.insert(id.into(), peer);
        peers.lengths.insert(id.len());
    }

    /// The peer that such a datagram is from, by the longest ID that fits.
    fn find(&self, to: &Endpoint, bytes: &[u8]) -> Option<Peer> {
        let peers = self.0.get(to)?;
        let place = peers.protocol.connection_id?(bytes)?;
        peers.lengths.iter().rev().find_map(|&length| peers.by_id.get(place.get(..length)?)).copied()
    }
}

impl Back<'_> {
    /// Remembers the connection ID of the last record of a datagram, where it has one.
    #[inline]
    pub(super) fn note_connection_id(&mut self, packet: &Packet, seat: Seat, conversation: u32, bytes: &[u8]) {
        let digits = self.message.row.connection_id.get().map_or(0, str::len);
        if digits == 0 {
            return;
        }
        let (Some(stream), Some(talk)) = (self.streams.get(seat.place), self.conversations.get(conversation)) else { return };
        let (protocol, from) = (talk.protocol, stream.side(seat));
        let id = protocol.connection_id.and_then(|connection_id| connection_id(bytes));
        if let Some(id) = id.and_then(|place| place.get(..digits / 2)) {
            self.connection_ids.note(packet.destination, protocol, id, Peer { conversation, from, at: packet.source });
        }
    }

    /// The conversation that a new stream goes on with, since its first datagram has the connection ID of a peer that is known from elsewhere.
    pub(super) fn moved(&mut self, packet: &Packet, place: u32, bytes: &[u8]) -> Option<u32> {
        let peer = self.connection_ids.find(&packet.destination, bytes)?;
        let session = self.conversations.get(peer.conversation)?.session;
        let stream = self.streams.get_mut(place)?;
        stream.join(peer.conversation, session, 0, packet, peer.from);
        let index = stream.ends.index;
        self.rooms.books.of(session).into_iter().for_each(|session| session.moved(index));
        let detail = || format!("from {} to {}", peer.at, packet.source);
        self.rooms.notes.add(note::PEER_MOVED, Some(session), packet.file, packet.frame, detail);
        Some(peer.conversation)
    }
}
