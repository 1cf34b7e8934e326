//! Streams by their two endpoints, numbered as Wireshark numbers `udp.stream` and `tcp.stream`.

use crate::packet::{Endpoint, Packet, Transport};
use rustc_hash::FxBuildHasher;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

/// The two endpoints of a stream, smaller first, and its transport; the hash is computed once, by the thread that opens frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamKey {
    hash: u64,
    low: Endpoint,
    high: Endpoint,
    is_tcp: bool,
}

impl StreamKey {
    /// The key of the stream that `packet` belongs to.
    #[must_use]
    pub fn new(packet: &Packet) -> Self {
        let is_tcp = matches!(packet.transport, Transport::Tcp(_));
        let (low, high) =
            if packet.source <= packet.destination { (packet.source, packet.destination) } else { (packet.destination, packet.source) };
        Self { hash: FxBuildHasher.hash_one((low, high, is_tcp)), low, high, is_tcp }
    }
}

impl Hash for StreamKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Hands a hash that is already one through.
#[derive(Debug, Default, Clone, Copy)]
pub struct Ready(u64);

impl Hasher for Ready {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Finds the stream of a packet.
#[derive(Debug, Default)]
pub struct StreamTable {
    places: HashMap<StreamKey, u32, std::hash::BuildHasherDefault<Ready>>,
    udp_streams: u32,
    tcp_streams: u32,
}

impl StreamTable {
    /// The place of the stream last noted under `key`.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &StreamKey) -> Option<u32> {
        self.places.get(key).copied()
    }

    /// Notes that packets of `key` now belong to the stream at `place`, and returns its index in Wireshark's count.
    pub fn note(&mut self, key: StreamKey, place: u32) -> u32 {
        let count = if key.is_tcp { &mut self.tcp_streams } else { &mut self.udp_streams };
        let index = *count;
        *count += 1;
        self.places.insert(key, place);
        index
    }
}
