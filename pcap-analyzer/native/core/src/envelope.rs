//! Opens a frame down to its UDP or TCP payload: link, network and transport headers in order.

use crate::capture::Frame;
use crate::note::Notes;
use crate::packet::{OtherFrame, Packet};

/// What a frame turned out to hold.
#[derive(Debug)]
pub enum Opened<'a> {
    /// A whole datagram or segment with the captured part of its payload.
    Packet(Packet, &'a [u8]),
    /// A fragment that is kept until its datagram is whole; its bytes will be in that packet's.
    Held,
    /// Something below or beside UDP and TCP.
    Other(OtherFrame),
}

/// Opens frames; remembers fragments between them.
#[derive(Debug, Default)]
pub struct Opener {}

impl Opener {
    /// Opens one frame.
    pub fn open<'a>(&'a mut self, frame: &Frame<'a>, notes: &mut Notes) -> Opened<'a> {
        let _ = notes;
        Opened::Other(OtherFrame { protocol: "eth", frame_bytes: frame.frame_bytes })
    }

    /// Frames whose datagrams never became whole: (protocol, bytes on the wire, frames), to be asked for at the end.
    pub fn unfinished(&mut self, notes: &mut Notes) -> Vec<OtherFrame> {
        let _ = notes;
        Vec::new()
    }
}
