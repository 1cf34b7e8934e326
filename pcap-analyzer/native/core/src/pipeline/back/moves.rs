//! Peers whose address changes while they talk (a NAT's new binding, another network): a connection ID in their records tells whose they are
//! (RFC 9146 §6, RFC 9147 §9; trap 14).

use super::Back;
use crate::message::Side;
use crate::note;
use crate::packet::{Endpoint, Packet};
use crate::protocols::Protocol;
use rustc_hash::FxHashMap;

/// Who sends records with a connection ID.
#[derive(Debug, Clone, Copy)]
struct Peer {
    protocol: &'static Protocol,
    conversation: u32,
    from: Side,
    /// Where it was last seen.
    at: Endpoint,
}

/// Connection IDs by the endpoint that receives them.
#[derive(Debug, Default)]
pub(super) struct ConnectionIds(FxHashMap<Endpoint, FxHashMap<Box<[u8]>, Peer>>);

impl ConnectionIds {
    fn note(&mut self, to: Endpoint, id: &[u8], peer: Peer) {
        let peers = self.0.entry(to).or_default();
        match peers.get_mut(id) {
            Some(known) => *known = peer,
            None => {
                peers.insert(id.into(), peer);
            }
        }
    }

    /// The peer that such a datagram is from: how long its connection ID is, only those that are known tell.
    fn find(&self, to: &Endpoint, bytes: &[u8]) -> Option<Peer> {
        let begins_with = |id: &[u8], peer: &Peer| (peer.protocol.connection_id)(bytes).is_some_and(|place| place.starts_with(id));
        let fitting = self.0.get(to)?.iter().filter(|(id, peer)| begins_with(id, peer));
        fitting.max_by_key(|(id, _)| id.len()).map(|(_, peer)| *peer)
    }
}

impl Back<'_> {
    /// Remembers the connection ID of the last record of a datagram, where it has one.
    #[inline]
    pub(super) fn note_connection_id(&mut self, packet: &Packet, place: u32, conversation: u32, bytes: &[u8]) {
        let digits = self.message.row.connection_id.get().map_or(0, str::len);
        if digits == 0 {
            return;
        }
        let (Some(stream), Some(talk)) = (self.streams.get(place), self.conversations.get(conversation)) else { return };
        let (protocol, from) = (talk.protocol, stream.side(packet));
        if let Some(id) = (protocol.connection_id)(bytes).and_then(|place| place.get(..digits / 2)) {
            self.connection_ids.note(packet.destination, id, Peer { protocol, conversation, from, at: packet.source });
        }
    }

    /// The conversation that a new stream goes on with, since its first datagram has the connection ID of a peer that is known from elsewhere.
    pub(super) fn moved(&mut self, packet: &Packet, place: u32, bytes: &[u8]) -> Option<u32> {
        let peer = self.connection_ids.find(&packet.destination, bytes)?;
        let session = self.conversations.get(peer.conversation)?.session;
        let stream = self.streams.get_mut(place)?;
        (stream.conversation, stream.session) = (Some(peer.conversation), Some(session));
        (stream.ends.client, stream.ends.server) = match peer.from {
            Side::Client => (packet.source, packet.destination),
            Side::Server => (packet.destination, packet.source),
        };
        let detail = || format!("from {} to {}", peer.at, packet.source);
        self.rooms.notes.add(note::PEER_MOVED, Some(session), packet.file, packet.frame, detail);
        Some(peer.conversation)
    }
}
