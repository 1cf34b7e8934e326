//! pcap (draft-ietf-opsawg-pcap): a file header, then records. Also the variants that Wireshark's wiretap reads.

use super::{largest_frame, FileInfo, Order, Reader, Record, Trouble, Window};

const FILE_HEADER: usize = 24;
/// Nokia's variant has the longest but one; Kuznetzov's ss990915 the longest record header.
const RECORD_HEADERS: [usize; 4] = [16, 24, 20, 28];
/// How many records are looked at to tell variants with the same magic number apart.
const RECORDS_TO_TRY: usize = 3;

/// What the magic number tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variant {
    /// Byte order of all fields.
    pub(super) order: Order,
    /// Nanoseconds of a unit of the sub-second field.
    pub(super) unit_ns: u32,
    /// Which record header lengths may occur: indices into `RECORD_HEADERS`, the likeliest first.
    pub(super) headers: &'static [usize],
    /// Bytes between file header and first record (IXIA: the length of all records).
    pub(super) preamble: usize,
}

/// Which of the two length fields comes first (older versions have the original length first).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    OriginalFirst,
    /// Version 2.3: either; the captured length is never the greater one.
    Either,
}

struct Pcap {
    order: Order,
    unit_ns: i64,
    lengths: Lengths,
    header: usize,
    link_type: u16,
    fcs_bytes: u8,
    largest: usize,
}

/// Reads the file header.
pub(super) fn open(window: &mut Window, info: &mut FileInfo, variant: Variant) -> Result<Box<dyn Reader>, Trouble> {
    window.demand(FILE_HEADER + variant.preamble, "the file header")?;
    let order = variant.order;
    let [_, versions, _, _, snap_length, network] = order.words(window.bytes());
    let (major, minor) = order.halves(versions);
    if major != 2 || (minor > 4 && minor != 543) {
        return Err(Trouble::Version(format!("pcap version {major}.{minor} is not known (2.4 is usual)")));
    }
    window.release(FILE_HEADER + variant.preamble);

    let (link_type, aix) = if (major, minor) == (2, 2) { aix_link_type(network) } else { (network, false) };
    let unit_ns = if aix { 1 } else { variant.unit_ns };
    let lengths = match minor {
        0..=2 | 543 if !aix => Lengths::OriginalFirst,
        3 => Lengths::Either,
        _ => Lengths::CapturedFirst,
    };
    let link_type = (link_type & 0xffff) as u16;
    let mut reader = Pcap {
        order,
        unit_ns: i64::from(unit_ns),
        lengths,
        header: 16,
        link_type,
        fcs_bytes: fcs_bytes(network),
        largest: largest_frame(link_type),
    };
    reader.header = reader.likeliest_header(window, variant.headers)?;
    info.snap_length_bytes = super::snap_length(snap_length);
    info.time_resolution_ns = u64::from(unit_ns);
    Ok(Box::new(reader))
}

/// IBM's AIX writes version 2.2, interface types of RFC 1573 and nanoseconds.
const fn aix_link_type(network: u32) -> (u32, bool) {
    match network {
        6 => (1, true),
        9 => (6, true),
        15 => (10, true),
        24 => (0, true),
        _ => (network, false),
    }
}

/// Frame check sequence length: bit 26 says that the upper four bits count its 16-bit words.
const fn fcs_bytes(network: u32) -> u8 {
    if network & 0x0400_0000 == 0 {
        return 0;
    }
    ((network >> 28) * 2) as u8
}

impl Pcap {
    /// The record header length under which the first records make most sense.
    fn likeliest_header(&self, window: &mut Window, candidates: &[usize]) -> Result<usize, Trouble> {
        let lengths = candidates.iter().filter_map(|&at| RECORD_HEADERS.get(at).copied());
        let mut best = (usize::MAX, 16);
        for header in lengths {
            let faults = if candidates.len() > 1 { self.faults(window, header)? } else { 0 };
            if faults < best.0 {
                best = (faults, header);
            }
            if faults == 0 {
                break;
            }
        }
        Ok(best.1)
    }

    /// Contradictions in the first records, were their headers `header` bytes long.
    fn faults(&self, window: &mut Window, header: usize) -> Result<usize, Trouble> {
        let (mut at, mut faults, mut before) = (0usize, 0, None);
        for _ in 0..RECORDS_TO_TRY {
            if !window.need(at + header)? {
                return Ok(faults + usize::from(window.bytes().len() > at));
            }
            let [seconds, fraction, first, second] = self.order.words(window.bytes().get(at..).unwrap_or(&[]));
            let (captured, original) = self.captured_and_original(first, second);
            if captured as usize > self.largest {
                return Ok(faults + RECORDS_TO_TRY);
            }
            faults += usize::from(original as usize > 64 * self.largest) + usize::from(captured > original);
            faults += usize::from(i64::from(fraction) * self.unit_ns >= 1_000_000_000);
            faults += usize::from(before.is_some_and(|earlier: u32| seconds.abs_diff(earlier) > 86_400));
            before = Some(seconds);
            at += header + captured as usize;
        }
        Ok(faults)
    }

    #[inline]
    const fn captured_and_original(&self, first: u32, second: u32) -> (u32, u32) {
        match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::Either if first <= second => (first, second),
            _ => (second, first),
        }
    }
}

impl Reader for Pcap {
    #[inline]
    fn next(&mut self, window: &mut Window, _info: &mut FileInfo, record: &mut Record) -> Result<bool, Trouble> {
        if !window.need(self.header)? {
            if window.bytes().is_empty() {
                return Ok(false);
            }
            window.demand(self.header, "a record header")?;
        }
        let [seconds, fraction, first, second] = self.order.words(window.bytes());
        let (captured, original) = self.captured_and_original(first, second);
        let length = captured as usize;
        if length > self.largest {
            return Err(Trouble::Damaged(format!(
                "a record claims {captured} bytes, more than the {} that a frame can have",
                self.largest
            )));
        }
        window.demand(self.header + length, "a record")?;
        let at = window.release(self.header + length) + self.header;
        *record = Record {
            time_ns: i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * self.unit_ns,
            at,
            captured: length,
            frame_bytes: original.max(captured),
            link_type: self.link_type,
            fcs_bytes: self.fcs_bytes,
        };
        Ok(true)
    }
}
