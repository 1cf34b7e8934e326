//! What is counted of one direction of a session.

use super::bytes::{ByteSums, PartSums};

/// The data that one side sends; in one line of the processor's cache.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Data {
    /// Data messages, each once.
    pub messages: u64,
    /// Data bytes, each once.
    pub bytes: u64,
    /// Times of the first and the last of them, where there are any.
    pub(super) times_ns: [i64; 2],
    /// Time of the receiver's acknowledgement of the last data message.
    pub last_ack_ns: Option<i64>,
    /// Exchange of the last of them, from 1 on, where an acknowledgement of it is expected; else 0.
    pub(super) last: u64,
    /// Whether the side sent anything since Time2: as a rule those who send data send nothing else.
    is_any_since: bool,
}

/// What one side sends. In this order what is counted together is in one line of the processor's cache: data, frames without a message, the rest.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Direction {
    /// The data.
    pub data: Data,
    /// Bytes of frames without a message.
    pub control_parts: ByteSums,
    /// Frames without a message.
    pub control_frames: u64,
    /// Data bytes less those that they take on the wire, where they were compressed.
    pub data_saved_bytes: i64,
    /// Bytes sent by this side since Time2, where there was data.
    pub(super) since_time2: ByteSums,
    /// Bytes of the publishers' legs.
    pub publisher_parts: Option<Box<PartSums>>,
    /// Bytes that belong to no message.
    pub unassigned_parts: Option<Box<PartSums>>,
}

impl Data {
    /// Times of the first and the last data message, where there are any.
    #[must_use]
    pub fn times_ns(&self) -> Option<[i64; 2]> {
        (self.messages > 0).then_some(self.times_ns)
    }

    /// Whether the last data message is to be acknowledged.
    #[must_use]
    pub const fn is_ack_expected(&self) -> bool {
        self.last > 0
    }
}

impl Direction {
    /// Where bytes are counted that this side sends now: without data there is no Time2 yet.
    #[inline]
    pub(super) fn since(&mut self) -> Option<&mut ByteSums> {
        self.data.is_any_since = self.data.messages > 0;
        self.data.is_any_since.then_some(&mut self.since_time2)
    }

    /// This is Time2, as far as it is known.
    #[inline]
    pub(super) fn restart(&mut self) {
        if std::mem::take(&mut self.data.is_any_since) {
            self.since_time2 = ByteSums::default();
        }
    }
}
