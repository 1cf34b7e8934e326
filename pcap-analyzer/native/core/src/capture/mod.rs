//! Files, pipes and several files in time order become frames; `FORMATS` is the table of magic numbers.

mod compressed;
mod file;
mod merge;
mod pcap;
mod pcapng;
mod window;

use std::io::Read;
use std::path::PathBuf;

use crate::error::Error;
use window::Window;

/// Where a capture is read from.
pub enum Input {
    /// A file, a named pipe or a device.
    Path(PathBuf),
    /// A file with a copy of what the user named: that name is the one to use in messages.
    Copy(String, PathBuf),
    /// Standard input, by the name "-".
    Standard,
    /// Any stream of bytes, with the name to use in messages.
    Stream(String, Box<dyn Read + Send>),
}

impl Input {
    /// The input that a user names: "-" is standard input, all else a path.
    #[must_use]
    pub fn named(name: &str) -> Self {
        if name == "-" {
            Self::Standard
        } else {
            Self::Path(PathBuf::from(name))
        }
    }
}

/// Opens a capture: one input in its own order, several merged in time order (a ring buffer of dumpcap).
///
/// # Errors
/// Where nothing can be read of any input: missing, empty, not a capture, a version that is not known.
pub fn open(inputs: Vec<Input>) -> Result<Box<dyn Source>, Error> {
    merge::open(inputs)
}

/// The TLS key logs embedded in captures: those ahead of the first frame, by which it can be decrypted in one pass, or all.
///
/// # Errors
/// As [`open`].
pub fn embedded_secrets(inputs: Vec<Input>, wants_all: bool) -> Result<Vec<Vec<u8>>, Error> {
    let mut source = open(inputs)?;
    while source.next_frame()?.is_some() && wants_all {}
    let secrets = source.files().into_iter().flat_map(|file| file.secrets);
    Ok(secrets.filter(|(kind, _)| *kind == TLS_KEY_LOG).map(|(_, data)| data).collect())
}

/// What captures tell of themselves besides their frames, which are read but not looked into.
///
/// # Errors
/// Where nothing can be read of any input.
pub fn files(inputs: Vec<Input>) -> Result<Vec<FileInfo>, Error> {
    let mut source = open(inputs)?;
    while source.next_frame()?.is_some() {}
    Ok(source.files())
}

/// Type of a decryption secrets block that holds a TLS key log ("TLSK").
const TLS_KEY_LOG: u32 = 0x544c_534b;

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
    /// Blocks without traffic that Wireshark numbers like frames.
    pub numbered_blocks: u64,
    /// Frames that the capturing system says it dropped (pcapng isb_ifdrop, isb_osdrop, epb_dropcount).
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
    pub frames_back_in_time: Frames,
    /// First and last capture time in capture order, in nanoseconds.
    pub first_time_ns: Option<i64>,
    /// Largest capture time seen, in nanoseconds.
    pub last_time_ns: Option<i64>,
    /// What ended the reading early: the frames before it are good.
    pub damage: Option<Error>,
}

/// Frames that have something in common: how many, and the numbers of the first and the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frames {
    /// How many.
    pub count: u64,
    /// The first one's number.
    pub first: u64,
    /// The last one's number.
    pub last: u64,
}

impl Frames {
    #[cold]
    fn add(&mut self, number: u64) {
        self.first = if self.count == 0 { number } else { self.first };
        self.last = number;
        self.count += 1;
    }
}

impl FileInfo {
    /// Number of the last frame that was read, as Wireshark counts.
    #[inline]
    pub(crate) const fn last_number(&self) -> u64 {
        self.frames + self.numbered_blocks
    }
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

/// A capture format or compression by its first bytes.
#[derive(Debug)]
pub struct Format {
    /// The first bytes.
    pub magic: &'static [u8],
    /// Name of the format.
    pub name: &'static str,
    kind: Kind,
}

type Stream = Box<dyn Read + Send>;
type OpenCapture = fn(&mut Window, &mut FileInfo) -> Result<Box<dyn Reader>, Trouble>;
type Unpack = fn(Stream) -> std::io::Result<Stream>;

#[derive(Debug)]
enum Kind {
    /// Frames: reads the file's header.
    Capture(OpenCapture),
    /// A capture within: unpacks it.
    Compression(Unpack),
    /// Known by name only: what to do about it.
    Foreign(&'static str),
}

use pcap::Variant;
use Order::{Big, Little};

const MICROSECONDS: Variant = Variant { order: Big, unit_ns: 1_000, headers: &[0, 1, 2], preamble: 0 };
const NANOSECONDS: Variant = Variant { order: Big, unit_ns: 1, headers: &[0], preamble: 0 };
const MODIFIED: Variant = Variant { order: Big, unit_ns: 1_000, headers: &[1, 3], preamble: 0 };
const IXIA: Variant = Variant { order: Big, unit_ns: 1, headers: &[0], preamble: 4 };

/// One row of [`FORMATS`] for pcap.
macro_rules! pcap {
    ($magic:expr, $name:literal, $order:expr, $variant:expr) => {
        Format {
            magic: &$magic,
            name: $name,
            kind: Kind::Capture(|window, info| pcap::open(window, info, Variant { order: $order, ..$variant })),
        }
    };
}

const CONVERT: &str = "convert it with: editcap -F pcapng OLD NEW";

/// All formats that are recognised.
pub const FORMATS: &[Format] = &[
    pcap!([0xa1, 0xb2, 0xc3, 0xd4], "pcap", Big, MICROSECONDS),
    pcap!([0xd4, 0xc3, 0xb2, 0xa1], "pcap", Little, MICROSECONDS),
    pcap!([0xa1, 0xb2, 0x3c, 0x4d], "pcap (nanoseconds)", Big, NANOSECONDS),
    pcap!([0x4d, 0x3c, 0xb2, 0xa1], "pcap (nanoseconds)", Little, NANOSECONDS),
    pcap!([0xa1, 0xb2, 0xcd, 0x34], "pcap (modified)", Big, MODIFIED),
    pcap!([0x34, 0xcd, 0xb2, 0xa1], "pcap (modified)", Little, MODIFIED),
    pcap!([0x1c, 0x00, 0x01, 0xac], "pcap (IXIA, hardware)", Big, IXIA),
    pcap!([0xac, 0x01, 0x00, 0x1c], "pcap (IXIA, hardware)", Little, IXIA),
    pcap!([0x1c, 0x00, 0x01, 0xab], "pcap (IXIA, software)", Big, IXIA),
    pcap!([0xab, 0x01, 0x00, 0x1c], "pcap (IXIA, software)", Little, IXIA),
    Format { magic: &[0x0a, 0x0d, 0x0d, 0x0a], name: "pcapng", kind: Kind::Capture(pcapng::open) },
    Format { magic: &[0x1f, 0x8b], name: "gzip", kind: Kind::Compression(compressed::gzip) },
    Format { magic: &[0x28, 0xb5, 0x2f, 0xfd], name: "zstd", kind: Kind::Compression(compressed::zstd) },
    // a frame to be passed over (RFC 8878 §3.1.2), with which pzstd begins
    Format { magic: &[0x50, 0x2a, 0x4d, 0x18], name: "zstd", kind: Kind::Compression(compressed::zstd) },
    Format { magic: &[0x04, 0x22, 0x4d, 0x18], name: "lz4", kind: Kind::Compression(compressed::lz4) },
    Format { magic: &[0xfd, b'7', b'z', b'X', b'Z', 0x00], name: "xz", kind: Kind::Foreign("unpack it first: xz -dk FILE") },
    Format { magic: b"BZh", name: "bzip2", kind: Kind::Foreign("unpack it first: bunzip2 -k FILE") },
    Format { magic: b"PK\x03\x04", name: "zip", kind: Kind::Foreign("unpack it first: unzip FILE") },
    Format { magic: b"snoop\0\0\0", name: "snoop", kind: Kind::Foreign(CONVERT) },
    Format { magic: b"XCP\0", name: "NetXRay", kind: Kind::Foreign(CONVERT) },
    Format { magic: b"GMBU", name: "Microsoft Network Monitor", kind: Kind::Foreign(CONVERT) },
    Format { magic: b"RTSS", name: "Microsoft Network Monitor", kind: Kind::Foreign(CONVERT) },
];

/// Byte order of a file's own fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Big,
    Little,
}

impl Order {
    #[inline]
    const fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Big => u16::from_be_bytes(bytes),
            Little => u16::from_le_bytes(bytes),
        }
    }

    #[inline]
    const fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Big => u32::from_be_bytes(bytes),
            Little => u32::from_le_bytes(bytes),
        }
    }

    #[inline]
    const fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Big => u64::from_be_bytes(bytes),
            Little => u64::from_le_bytes(bytes),
        }
    }

    /// The first `N` 32-bit words of `bytes`; what is missing is 0.
    #[inline]
    fn words<const N: usize>(self, bytes: &[u8]) -> [u32; N] {
        std::array::from_fn(|at| bytes.get(4 * at..).and_then(<[u8]>::first_chunk).map_or(0, |four| self.u32(*four)))
    }

    /// The two 16-bit halves of a word in the order of the file.
    const fn halves(self, word: u32) -> (u16, u16) {
        let (high, low) = ((word >> 16) as u16, (word & 0xffff) as u16);
        match self {
            Big => (high, low),
            Little => (low, high),
        }
    }
}

/// A frame that a [`Reader`] found, its bytes still in the window.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    time_ns: i64,
    at: usize,
    captured: usize,
    frame_bytes: u32,
    link_type: u16,
    fcs_bytes: u8,
}

/// Reads the records of one format.
trait Reader: Send {
    /// Goes on to the next frame, which is written to `record`; false at the regular end.
    fn next(&mut self, window: &mut Window, info: &mut FileInfo, record: &mut Record) -> Result<bool, Trouble>;
}

/// What stops a [`Reader`]; [`file`] makes an [`Error`] of it.
#[derive(Debug)]
enum Trouble {
    Read(std::io::Error),
    Version(String),
    Cut { what: &'static str, needed: usize, left: usize },
    Damaged(String),
}

/// The greatest captured length of a frame that wiretap takes for possible (wiretap/wtap.h, `WTAP_MAX_PACKET_SIZE_…`).
const fn largest_frame(link_type: u16) -> usize {
    match link_type {
        /* D-Bus, USBPcap */ 231 | 249 => 128 * 1024 * 1024,
        /* EBHSCR */ 279 => 32 * 1024 * 1024,
        _ => 256 * 1024,
    }
}

/// A declared snap length; 0 and what exceeds the largest frame mean unlimited.
const fn snap_length(declared: u32) -> Option<u32> {
    if declared == 0 || declared >= 262_144 {
        return None;
    }
    Some(declared)
}
