//! A conversation takes bytes of a stream: what TCP's reassembly passes on is cut into messages, or counts without one.

use super::super::desk::Desk;
use super::stream::TcpHalf;
use crate::message::Side;
use crate::packet::{Packet, TcpHeader};
use crate::protocols::framing::{Cutter, Half};
use crate::sessions::{without_message, Control, Session, Why};
use crate::span::Piece;
use crate::transport::{Acknowledged, Delivery, Teller};

/// A conversation in the act of taking bytes of a packet.
pub(super) struct Talk<'a, 's> {
    pub(super) desk: Desk<'a, 's>,
    pub(super) cutter: Cutter<'a>,
    pub(super) halves: &'a mut [Half; 2],
}

impl Talk<'_, '_> {
    /// Bytes of the sender's direction.
    #[inline]
    pub(super) fn segment(&mut self, tcp: &mut [TcpHalf; 2], sequence: u32, packet: &Packet, bytes: &[u8]) {
        let at = self.cutter.from.index();
        let (Some(tcp), Some(half)) = (tcp.get_mut(at), self.halves.get_mut(at)) else { return };
        let (cutter, desk) = (&mut self.cutter, &mut self.desk);
        let is_behind = tcp.reassembly.segment(sequence, packet.whole(), bytes, &mut |delivery| deliver(delivery, half, cutter, desk));
        if is_behind {
            desk.rooms.books.of(desk.session).into_iter().for_each(Session::out_of_order);
        }
    }

    /// An acknowledgement tells that the peer's missing segments did arrive there.
    #[inline]
    pub(super) fn acknowledge(&mut self, tcp: &mut [TcpHalf; 2], header: &TcpHeader, packet: &Packet) {
        let (peer, acknowledgment) = (self.cutter.from.peer(), header.acknowledgment);
        let has_peer_ended = tcp.get(self.cutter.from.index()).is_some_and(TcpHalf::has_ended);
        let (Some(tcp), Some(half)) = (tcp.get_mut(peer.index()), self.halves.get_mut(peer.index())) else { return };
        if !tcp.reassembly.is_holding() && !tcp.reassembly.is_ahead(acknowledgment) {
            return;
        }
        let from = std::mem::replace(&mut self.cutter.from, peer);
        let (cutter, desk) = (&mut self.cutter, &mut self.desk);
        let now = cutter.now;
        let acknowledged =
            Acknowledged { acknowledgment, origin: packet, has_peer_ended, is_behind_fin: has_peer_ended && !header.has(TcpHeader::FIN) };
        tcp.reassembly.peer_acknowledges(&acknowledged, &mut |delivery| deliver(delivery, half, cutter, desk));
        (cutter.now, cutter.is_behind_gap) = (now, false);
        self.cutter.from = from;
    }

    /// A RST tells where the sender's direction ends.
    #[cold]
    pub(super) fn reset(&mut self, tcp: &mut [TcpHalf; 2], sequence: u32, packet: &Packet) {
        tcp.get_mut(self.cutter.from.index()).into_iter().for_each(|tcp| tcp.reassembly.reaches(sequence, Teller::Bytes, packet));
    }

    /// The end of the sender's direction.
    pub(super) fn finish(&mut self, tcp: &mut [TcpHalf; 2]) {
        let from = self.cutter.from;
        let is_peers_fin_acknowledged = tcp.get(from.peer().index()).is_some_and(|peer| peer.is_end_acknowledged);
        let (Some(tcp), Some(half)) = (tcp.get_mut(from.index()), self.halves.get_mut(from.index())) else { return };
        let (cutter, desk) = (&mut self.cutter, &mut self.desk);
        tcp.reassembly.finish(is_peers_fin_acknowledged, &mut |delivery| deliver(delivery, half, cutter, desk));
        half.finish(from, desk);
    }
}

/// Passes on what came in order.
#[inline]
fn deliver(delivery: Delivery<'_>, half: &mut Half, cutter: &mut Cutter<'_>, desk: &mut Desk<'_, '_>) {
    match delivery {
        Delivery::Chunk(piece, bytes) => {
            if cutter.is_behind_gap && piece.time_ns > cutter.now.1 {
                cutter.now = (piece.frame, piece.time_ns);
            }
            half.chunk(cutter, piece, bytes, desk);
        }
        Delivery::Gap(missing, behind) => {
            (cutter.now, cutter.is_behind_gap) = ((behind.frame, behind.time_ns), true);
            half.gap(cutter, missing, desk);
        }
        Delivery::Repeated { piece, is_first: true } => pass(piece, Why::Retransmission, cutter.from, desk),
        Delivery::Repeated { piece, is_first: false } | Delivery::KeepAlive(piece) => pass(piece, Why::Empty, cutter.from, desk),
    }
}

/// Counts bytes that are no new ones.
#[cold]
fn pass(piece: Piece<'_>, why: Why, from: Side, desk: &mut Desk<'_, '_>) {
    let earlier = if piece.frame_first == piece.frame { 0 } else { desk.earlier_frames.len() as u32 };
    let control = Control {
        parts: without_message(&piece.share(), piece.len()),
        frames: if piece.is_whole() { 1 + earlier } else { 0 },
        frame: piece.frame,
        time_ns: piece.time_ns,
        why,
    };
    desk.rooms.books.of(desk.session).into_iter().for_each(|session| session.control(from, &control));
}
