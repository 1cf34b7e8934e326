//! pcapng (draft-ietf-opsawg-pcapng): sections of blocks; frames are in enhanced (§4.3), simple (§4.4) and obsolete (Appendix B) packet blocks.

use super::{largest_frame, FileInfo, Order, Reader, Record, Trouble, Window};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;
/// Blocks without traffic that Wireshark shows as frames: systemd journal, Sysdig events, custom blocks.
const NUMBERED: &[u32] = &[9, 0x204, 0x216, 0x221, 0xbad, 0x4000_0bad];

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// wiretap takes a longer block for damage too (wiretap/pcapng.c, `MAX_BLOCK_SIZE`); frames of some link types may be longer.
const LONGEST_BLOCK: usize = 16 * 1024 * 1024;
const MOST_INTERFACES: usize = 65_536;
/// Bounds of what is kept of a file beside its frames.
const KEPT_COMMENT_BYTES: usize = 1024 * 1024;
const KEPT_SECRET_BYTES: usize = 32 * 1024 * 1024;
const KEPT_NAMES: usize = 1024;

/// What an interface description block says (§4.2).
#[derive(Debug, Clone, Copy)]
struct Interface {
    link_type: u16,
    snap_length: u32,
    clock: Clock,
    fcs_bytes: u8,
    dropped: Dropped,
}

/// Frames of an interface that were dropped, told in two ways. Both count drops of the interface and of the operating system since the capture's
/// beginning, so they are of the same frames and are not added.
#[derive(Debug, Clone, Copy, Default)]
struct Dropped {
    /// Latest isb_ifdrop and isb_osdrop (§4.6).
    by_statistics: u64,
    /// Sum of epb_dropcount: drops between a packet and the one before it (§4.3).
    by_packets: u64,
}

impl Dropped {
    /// The greater count: statistics may be older than the last packets, and drops behind the last packet are in them only.
    fn frames(self) -> u64 {
        self.by_statistics.max(self.by_packets)
    }
}

/// How an interface's timestamps count: `if_tsresol`, `if_tsoffset`.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Nanoseconds of a unit; 0 where a unit is not a whole number of them.
    unit_ns: i64,
    /// Units of a second.
    per_second: u128,
    offset_seconds: i64,
}

struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
    kept_comment_bytes: usize,
    kept_secret_bytes: usize,
}

/// Reads the first section header.
pub(super) fn open(window: &mut Window, info: &mut FileInfo) -> Result<Box<dyn Reader>, Trouble> {
    let mut reader = Pcapng { order: Order::Big, interfaces: Vec::new(), kept_comment_bytes: 0, kept_secret_bytes: 0 };
    reader.section(window, info)?;
    Ok(Box::new(reader))
}

impl Reader for Pcapng {
    #[inline]
    fn next(&mut self, window: &mut Window, info: &mut FileInfo, record: &mut Record) -> Result<bool, Trouble> {
        loop {
            if !window.need(8)? {
                if window.bytes().is_empty() {
                    return Ok(false);
                }
                window.demand(8, "a block header")?;
            }
            let [kind, length] = self.order.words(window.bytes());
            *record = match kind {
                ENHANCED_PACKET => self.enhanced(window, length, info)?,
                SIMPLE_PACKET => self.simple(window, length)?,
                OBSOLETE_PACKET => self.obsolete(window, length, info)?,
                _ => {
                    self.other(window, kind, length, info)?;
                    continue;
                }
            };
            return Ok(true);
        }
    }
}

impl Pcapng {
    /// Everything but packet blocks.
    #[cold]
    fn other(&mut self, window: &mut Window, kind: u32, length: u32, info: &mut FileInfo) -> Result<(), Trouble> {
        match kind {
            SECTION_HEADER => return self.section(window, info),
            INTERFACE_DESCRIPTION => {
                let total = self.block(window, length, 20, "an interface description block")?;
                self.interface(window.bytes().get(8..total - 4).unwrap_or(&[]), info)?;
                window.release(total);
            }
            INTERFACE_STATISTICS => {
                let total = self.block(window, length, 24, "an interface statistics block")?;
                self.statistics(window.bytes().get(8..total - 4).unwrap_or(&[]), info);
                window.release(total);
            }
            DECRYPTION_SECRETS => {
                let total = self.block(window, length, 20, "a decryption secrets block")?;
                self.secrets(window.bytes().get(8..total - 4).unwrap_or(&[]), info)?;
                window.release(total);
            }
            _ => {
                info.numbered_blocks += u64::from(NUMBERED.contains(&kind));
                skip(window, kind, length)?;
            }
        }
        Ok(())
    }

    /// Brings a whole block into the window, checks its two lengths, and tells its length with padding.
    #[inline]
    fn block(&self, window: &mut Window, length: u32, least: usize, what: &'static str) -> Result<usize, Trouble> {
        let total = (length as usize).next_multiple_of(4);
        if total < least {
            return Err(Trouble::Damaged(format!("{what} claims {length} bytes, fewer than its {least} fixed ones")));
        }
        if total > LONGEST_BLOCK && total > largest_frame(self.interfaces.first().map_or(0, |interface| interface.link_type)) {
            return Err(Trouble::Damaged(format!("{what} claims {length} bytes, more than {LONGEST_BLOCK}")));
        }
        window.demand(total, what)?;
        let [trailer] = self.order.words(window.bytes().get(total - 4..).unwrap_or(&[]));
        if trailer != length {
            return Err(Trouble::Damaged(format!("{what} has two lengths, {length} at its start and {trailer} at its end")));
        }
        Ok(total)
    }

    /// Section header block (§4.1): byte order, version; interfaces begin anew.
    fn section(&mut self, window: &mut Window, info: &mut FileInfo) -> Result<(), Trouble> {
        window.demand(28, "a section header block")?;
        let [_, _, magic] = Order::Big.words(window.bytes());
        self.order = match magic {
            BYTE_ORDER_MAGIC => Order::Big,
            0x4d3c_2b1a => Order::Little,
            _ => return Err(Trouble::Damaged(format!("a section header block with the byte-order magic {magic:08x}"))),
        };
        let [_, length, _, version] = self.order.words(window.bytes());
        let (major, minor) = self.order.halves(version);
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(Trouble::Version(format!("pcapng version {major}.{minor} is not known (1.0 is usual)")));
        }
        let total = self.block(window, length, 28, "a section header block")?;
        self.options(window.bytes().get(24..total - 4).unwrap_or(&[]), info, |_, _| {});
        window.release(total);
        self.interfaces.clear();
        Ok(())
    }

    /// Interface description block (§4.2).
    fn interface(&mut self, body: &[u8], info: &mut FileInfo) -> Result<(), Trouble> {
        if self.interfaces.len() >= MOST_INTERFACES {
            return Err(Trouble::Damaged(format!("more than {MOST_INTERFACES} interfaces in a section")));
        }
        let order = self.order;
        let [kind, snap_length] = order.words(body);
        let (link_type, _) = order.halves(kind);
        let (mut resolution, mut offset_seconds, mut fcs_bytes, mut name) = (6, 0, 0, String::new());
        self.options(body.get(8..).unwrap_or(&[]), info, |code, value| match (code, value) {
            (2, _) => name = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
            (9, [first, ..]) => resolution = *first,
            (13, [first, ..]) => fcs_bytes = if *first >= 16 { *first / 8 } else { *first },
            (14, _) => offset_seconds = value.first_chunk().map_or(0, |eight| order.u64(*eight).cast_signed()),
            _ => {}
        });
        let clock = Clock::new(resolution, offset_seconds);
        info.time_resolution_ns = info.time_resolution_ns.max(clock.resolution_ns());
        info.snap_length_bytes = match (super::snap_length(snap_length), self.interfaces.is_empty()) {
            (Some(declared), true) => Some(info.snap_length_bytes.unwrap_or(0).max(declared)),
            (Some(declared), false) => info.snap_length_bytes.map(|before| before.max(declared)),
            (None, _) => None,
        };
        if !name.is_empty() && info.interfaces.len() < KEPT_NAMES && !info.interfaces.contains(&name) {
            info.interfaces.push(name);
        }
        self.interfaces.push(Interface { link_type, snap_length, clock, fcs_bytes, dropped: Dropped::default() });
        Ok(())
    }

    /// Interface statistics block (§4.6): the latest one of an interface counts.
    fn statistics(&mut self, body: &[u8], info: &mut FileInfo) {
        let order = self.order;
        let [interface] = order.words(body);
        let mut dropped = None;
        self.options(body.get(12..).unwrap_or(&[]), info, |code, value| {
            if let (5 | 7, Some(eight)) = (code, value.first_chunk()) {
                dropped = Some(dropped.unwrap_or(0u64).saturating_add(order.u64(*eight)));
            }
        });
        if let Some(frames) = dropped {
            self.note_drops(interface, info, |dropped| dropped.by_statistics = frames);
        }
    }

    /// Notes drops of an interface in the sum of all.
    fn note_drops(&mut self, interface: u32, info: &mut FileInfo, note: impl FnOnce(&mut Dropped)) {
        let Some(Interface { dropped, .. }) = self.interfaces.get_mut(interface as usize) else { return };
        let before = dropped.frames();
        note(dropped);
        let others = info.dropped_frames.unwrap_or(0).saturating_sub(before);
        info.dropped_frames = Some(others.saturating_add(dropped.frames()));
    }

    /// Notes drops that a packet tells of.
    fn note_drops_before(&mut self, interface: u32, info: &mut FileInfo, frames: u64) {
        self.note_drops(interface, info, |dropped| dropped.by_packets = dropped.by_packets.saturating_add(frames));
    }

    /// Decryption secrets block (§4.7).
    fn secrets(&mut self, body: &[u8], info: &mut FileInfo) -> Result<(), Trouble> {
        let [kind, length] = self.order.words(body);
        let data = body.get(8..).and_then(|rest| rest.get(..length as usize));
        let Some(data) = data else {
            return Err(Trouble::Damaged(format!("a decryption secrets block claims {length} bytes of secrets, more than it holds")));
        };
        self.kept_secret_bytes += data.len();
        if self.kept_secret_bytes > KEPT_SECRET_BYTES {
            return Err(Trouble::Damaged(format!("more than {KEPT_SECRET_BYTES} bytes of decryption secrets")));
        }
        info.secrets.push((kind, data.to_vec()));
        Ok(())
    }

    /// Enhanced packet block (§4.3).
    #[inline]
    fn enhanced(&mut self, window: &mut Window, length: u32, info: &mut FileInfo) -> Result<Record, Trouble> {
        let total = self.block(window, length, 32, "an enhanced packet block")?;
        let [_, _, interface, high, low, captured, original] = self.order.words(window.bytes());
        self.packet(window, total, Fields { fixed: 28, interface, high, low, captured, original }, info)
    }

    /// Packet block (Appendix B), as Wireshark wrote it until 2006.
    fn obsolete(&mut self, window: &mut Window, length: u32, info: &mut FileInfo) -> Result<Record, Trouble> {
        let total = self.block(window, length, 32, "a packet block")?;
        let [_, _, interface, high, low, captured, original] = self.order.words(window.bytes());
        let (interface, drops) = self.order.halves(interface);
        if drops != u16::MAX {
            self.note_drops_before(interface.into(), info, drops.into());
        }
        self.packet(window, total, Fields { fixed: 28, interface: u32::from(interface), high, low, captured, original }, info)
    }

    /// What enhanced and obsolete packet blocks have in common.
    #[inline]
    fn packet(&mut self, window: &mut Window, total: usize, fields: Fields, info: &mut FileInfo) -> Result<Record, Trouble> {
        let Fields { fixed, interface: index, high, low, captured, original } = fields;
        let interface = self.described(index)?;
        let length = captured as usize;
        let end = fixed + length.next_multiple_of(4);
        if end + 4 > total || length > largest_frame(interface.link_type) {
            return Err(Trouble::Damaged(format!("a packet block of {total} bytes claims a frame of {captured}")));
        }
        let mut fcs_bytes = interface.fcs_bytes;
        if end + 4 < total {
            fcs_bytes = self.packet_options(window.bytes().get(end..total - 4).unwrap_or(&[]), index, info).unwrap_or(fcs_bytes);
        }
        let at = window.release(total) + fixed;
        let units = u64::from(high) << 32 | u64::from(low);
        Ok(Record {
            time_ns: interface.clock.time_ns(units),
            at,
            captured: length,
            frame_bytes: original.max(captured),
            link_type: interface.link_type,
            fcs_bytes,
        })
    }

    /// Comments, drops and, from the flags (§4.3.1, bits 5 to 8), the length of the frame check sequence.
    #[cold]
    fn packet_options(&mut self, options: &[u8], interface: u32, info: &mut FileInfo) -> Option<u8> {
        let order = self.order;
        let (mut fcs_bytes, mut dropped) = (None, None);
        let before = info.comments.len();
        self.options(options, info, |code, value| match (code, value.first_chunk(), value.first_chunk()) {
            (2, Some(four), _) => fcs_bytes = Some((order.u32(*four) >> 5 & 0xf) as u8).filter(|&length| length > 0),
            (4, _, Some(eight)) => dropped = Some(order.u64(*eight)),
            _ => {}
        });
        if let Some(frames) = dropped {
            self.note_drops_before(interface, info, frames);
        }
        let number = info.last_number() + 1;
        for (frame, _) in info.comments.iter_mut().skip(before) {
            *frame = Some(number);
        }
        fcs_bytes
    }

    /// Simple packet block (§4.4): the first interface, no time, captured length by snap length.
    fn simple(&mut self, window: &mut Window, length: u32) -> Result<Record, Trouble> {
        let total = self.block(window, length, 16, "a simple packet block")?;
        let interface = self.described(0)?;
        let [_, _, original] = self.order.words(window.bytes());
        let snap_length = if interface.snap_length == 0 { u32::MAX } else { interface.snap_length };
        let captured = (original.min(snap_length) as usize).min(total - 16);
        if captured > largest_frame(interface.link_type) {
            return Err(Trouble::Damaged(format!("a simple packet block claims a frame of {captured} bytes")));
        }
        let at = window.release(total) + 12;
        Ok(Record {
            time_ns: 0,
            at,
            captured,
            frame_bytes: original.max(captured as u32),
            link_type: interface.link_type,
            fcs_bytes: interface.fcs_bytes,
        })
    }

    #[inline]
    fn described(&self, interface: u32) -> Result<Interface, Trouble> {
        let known = self.interfaces.get(interface as usize).copied();
        known.ok_or_else(|| Trouble::Damaged(format!("a packet block names interface {interface}, of which there is no description")))
    }

    /// Walks the options of a block (§3.5); comments are kept here, the others go to `take`.
    fn options(&mut self, mut rest: &[u8], info: &mut FileInfo, mut take: impl FnMut(u16, &[u8])) {
        while let Some(([code0, code1, length0, length1], after)) = rest.split_first_chunk() {
            let code = self.order.u16([*code0, *code1]);
            let length = usize::from(self.order.u16([*length0, *length1]));
            let Some(value) = after.get(..length) else {
                return;
            };
            match code {
                0 => return,
                1 => self.comment(value, info),
                _ => take(code, value),
            }
            rest = after.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        }
    }

    fn comment(&mut self, text: &[u8], info: &mut FileInfo) {
        if self.kept_comment_bytes > KEPT_COMMENT_BYTES {
            return;
        }
        self.kept_comment_bytes += text.len() + 64;
        let text = if self.kept_comment_bytes > KEPT_COMMENT_BYTES {
            "further comments are not kept".to_owned()
        } else {
            String::from_utf8_lossy(text).trim_end_matches('\0').to_owned()
        };
        info.comments.push((None, text));
    }
}

/// The fields that enhanced and obsolete packet blocks share.
struct Fields {
    /// Bytes of the block before the frame.
    fixed: usize,
    interface: u32,
    high: u32,
    low: u32,
    captured: u32,
    original: u32,
}

/// Passes over a block without keeping it, however long it is.
fn skip(window: &mut Window, kind: u32, length: u32) -> Result<(), Trouble> {
    let total = u64::from(length).next_multiple_of(4);
    if total < 12 {
        return Err(Trouble::Damaged(format!("a block of type {kind:#010x} claims {length} bytes, fewer than its 12 fixed ones")));
    }
    if window.skip(total)? {
        return Ok(());
    }
    Err(Trouble::Cut { what: "a block that is passed over", needed: usize::try_from(total).unwrap_or(usize::MAX), left: 0 })
}

impl Clock {
    /// By `if_tsresol`: a power of ten, or with the highest bit set of two.
    fn new(resolution: u8, offset_seconds: i64) -> Self {
        let exponent = u32::from(resolution & 0x7f);
        let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
        let per_second = base.checked_pow(exponent).unwrap_or(u128::MAX);
        let unit_ns = if per_second != 0 && 1_000_000_000 % per_second == 0 { (1_000_000_000 / per_second) as i64 } else { 0 };
        Self { unit_ns, per_second, offset_seconds }
    }

    /// Nanoseconds of a unit, rounded up.
    fn resolution_ns(&self) -> u64 {
        1_000_000_000u128.div_ceil(self.per_second) as u64
    }

    /// A timestamp in nanoseconds since 1970, rounded down; beyond the years 1677 to 2262 it stays at their end.
    #[inline]
    fn time_ns(&self, units: u64) -> i64 {
        let since = i64::try_from(units).ok().filter(|_| self.unit_ns != 0).and_then(|units| units.checked_mul(self.unit_ns));
        let since = since.unwrap_or_else(|| self.slow_time_ns(units));
        since.saturating_add(self.offset_seconds.saturating_mul(1_000_000_000))
    }

    #[cold]
    fn slow_time_ns(&self, units: u64) -> i64 {
        let units = u128::from(units);
        let whole = units / self.per_second * 1_000_000_000;
        let part = (units % self.per_second).checked_mul(1_000_000_000).map_or(0, |scaled| scaled / self.per_second);
        i64::try_from(whole + part).unwrap_or(i64::MAX)
    }
}
