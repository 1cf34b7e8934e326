//! Files, pipes and several files in time order become frames; `FORMATS` is the table of magic numbers.

use crate::error::Error;

/// One captured frame, as the capture file tells it. `captured` borrows the source's buffer until the next frame is read.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Number of the frame in its file, counted from 1 as Wireshark does.
    pub number: u64,
    /// Which of the inputs it came from, counted from 0 in the order the user named them.
    pub file: u16,
    /// Capture time in nanoseconds since 1970-01-01 (UTC).
    pub time_ns: i64,
    /// The bytes that were captured.
    pub captured: &'a [u8],
    /// Length on the wire in bytes, never less than `captured.len()` (the original length; trap 54).
    pub frame_bytes: u32,
    /// LINKTYPE_ number of the interface (<https://www.tcpdump.org/linktypes.html>).
    pub link_type: u16,
    /// Bytes of frame check sequence at the frame's end, where the capture says so.
    pub fcs_bytes: u8,
}

/// What is known of an input besides its frames, complete once the source has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileInfo {
    /// The file as the user named it ("-" for standard input).
    pub path: String,
    /// "pcap", "pcap (nanoseconds)", "pcapng", …, with the compression: "pcapng, gzip".
    pub format: String,
    /// Frames read.
    pub frames: u64,
    /// Bytes on the wire of these frames.
    pub frame_bytes: u64,
    /// Bytes captured of these frames.
    pub captured_bytes: u64,
    /// Frames whose capture is shorter than the frame was.
    pub cut_frames: u64,
    /// The largest snap length that an interface declares; none where unlimited or unknown.
    pub snap_length_bytes: Option<u32>,
    /// Coarsest timestamp resolution of an interface in nanoseconds (1000 for µs), rounded up.
    pub time_resolution_ns: u64,
    /// Frames that the capturing system says it dropped (pcapng isb_ifdrop, isb_osdrop).
    pub dropped_frames: Option<u64>,
    /// Comments of sections, interfaces and frames, with the frame's number where it has one.
    pub comments: Vec<(Option<u64>, String)>,
    /// Decryption secrets blocks: secrets type and data (pcapng DSB).
    pub secrets: Vec<(u32, Vec<u8>)>,
    /// Link types seen.
    pub link_types: Vec<u16>,
    /// Interface names, where the capture has them.
    pub interfaces: Vec<String>,
    /// Frames whose time is before that of the frame before them.
    pub frames_back_in_time: u64,
    /// First and last capture time in capture order, in nanoseconds.
    pub first_time_ns: Option<i64>,
    /// Largest capture time seen, in nanoseconds.
    pub last_time_ns: Option<i64>,
    /// What ended the reading early: the frames before it are good.
    pub damage: Option<Error>,
}

/// Where frames come from: one file, a pipe, or several merged in time order.
pub trait Source: Send {
    /// The next frame, or none at the end. A capture that is damaged or cut short ends here too; [`Source::files`] then tells why.
    ///
    /// # Errors
    /// Only where nothing at all can be read of an input (missing, empty, not a capture, unknown version).
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Error>;

    /// What is known of the inputs, one entry each, in the order they were named.
    fn files(&self) -> Vec<FileInfo>;
}
