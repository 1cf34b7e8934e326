//! One input: opens it, finds its format, counts its frames and turns trouble into errors that name the place.

use std::fs::File as Handle;
use std::io::{self, Read};

use super::{FileInfo, Format, Frame, Input, Kind, Reader, Record, Trouble, Window, FORMATS};
use crate::error::{Error, ErrorKind};

/// How much is looked at to recognise a format.
const MAGIC_BYTES: usize = 8;

/// One capture file or stream that is being read.
pub(super) struct File {
    index: u16,
    window: Window,
    reader: Box<dyn Reader>,
    info: FileInfo,
    record: Record,
    /// Whether it stands at a frame, that of `record`.
    is_at_frame: bool,
    /// Time of the frame before, for the count of steps back.
    time_before_ns: i64,
}

impl File {
    /// Opens an input; on failure its description comes back, the error as its damage.
    pub(super) fn open(input: Input, index: u16, block_bytes: usize) -> Result<Self, Box<FileInfo>> {
        let mut info = FileInfo { path: name(&input), ..FileInfo::default() };
        match open_window(input, &mut info, block_bytes) {
            Ok((window, reader)) => {
                Ok(Self { index, window, reader, info, record: Record::default(), is_at_frame: false, time_before_ns: i64::MIN })
            }
            Err(error) => Err(Box::new(FileInfo { damage: Some(error), ..info })),
        }
    }

    /// Goes on to the next frame and tells its time; none at the end, for whatever reason.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> Option<i64> {
        self.is_at_frame = false;
        if self.info.damage.is_some() {
            return None;
        }
        match self.reader.next(&mut self.window, &mut self.info, &mut self.record) {
            Ok(true) => {
                self.count();
                self.is_at_frame = true;
                Some(self.record.time_ns)
            }
            Ok(false) => None,
            Err(trouble) => {
                self.info.damage = Some(error(trouble, &self.info, self.window.offset(), Some(self.info.last_number())));
                None
            }
        }
    }

    /// The frame that [`File::advance`] went to.
    #[inline(always)]
    pub(super) fn frame(&self) -> Option<Frame<'_>> {
        let record = &self.record;
        self.is_at_frame.then(|| Frame {
            number: self.info.last_number(),
            file: self.index,
            time_ns: record.time_ns,
            captured: self.window.slice(record.at, record.captured),
            frame_bytes: record.frame_bytes,
            link_type: record.link_type,
            fcs_bytes: record.fcs_bytes,
        })
    }

    /// What is known of the input.
    pub(super) const fn info(&self) -> &FileInfo {
        &self.info
    }

    #[inline(always)]
    fn count(&mut self) {
        let (info, record) = (&mut self.info, &self.record);
        info.frames += 1;
        info.frame_bytes += u64::from(record.frame_bytes);
        info.captured_bytes += record.captured as u64;
        info.cut_frames += u64::from((record.captured as u64) < u64::from(record.frame_bytes));
        if record.time_ns < self.time_before_ns {
            info.frames_back_in_time.add(info.last_number());
        }
        self.time_before_ns = record.time_ns;
        match info.last_time_ns {
            Some(last) if last >= record.time_ns => {}
            Some(_) => info.last_time_ns = Some(record.time_ns),
            None => {
                info.first_time_ns = Some(record.time_ns);
                info.last_time_ns = Some(record.time_ns);
            }
        }
        if info.link_types.last() != Some(&record.link_type) && !info.link_types.contains(&record.link_type) {
            info.link_types.push(record.link_type);
        }
    }
}

fn name(input: &Input) -> String {
    match input {
        Input::Path(path) => path.display().to_string(),
        Input::Standard => "-".to_owned(),
        Input::Copy(name, _) | Input::Stream(name, _) => name.clone(),
    }
}

fn stream(input: Input) -> io::Result<Box<dyn Read + Send>> {
    Ok(match input {
        Input::Path(path) | Input::Copy(_, path) => Box::new(Handle::open(path)?),
        Input::Standard => Box::new(io::stdin()),
        Input::Stream(_, stream) => stream,
    })
}

/// Recognises format and compression, and reads the file's header.
fn open_window(input: Input, info: &mut FileInfo, block_bytes: usize) -> Result<(Window, Box<dyn Reader>), Error> {
    let stream = stream(input).map_err(|cause| error(Trouble::Read(cause), info, 0, None))?;
    let mut window = Window::new(stream, block_bytes);
    let mut packing = None;
    loop {
        let format = recognise(&mut window, info)?;
        match &format.kind {
            Kind::Compression(unpack) if packing.is_none() => {
                packing = Some(format.name);
                let unpacked = unpack(window.into_reader()).map_err(|cause| error(Trouble::Read(cause), info, 0, None))?;
                window = Window::new(unpacked, block_bytes);
            }
            Kind::Capture(open) => {
                info.format = packing.map_or_else(|| format.name.to_owned(), |packing| format!("{}, {packing}", format.name));
                let reader = open(&mut window, info).map_err(|trouble| error(trouble, info, window.offset(), None))?;
                return Ok((window, reader));
            }
            Kind::Compression(_) => {
                return Err(not_a_capture(info, format!("{} within another compression", format.name), "unpack it first"))
            }
            Kind::Foreign(remedy) => return Err(not_a_capture(info, format!("{} is not read here", format.name), remedy)),
        }
    }
}

fn recognise(window: &mut Window, info: &FileInfo) -> Result<&'static Format, Error> {
    window.need(MAGIC_BYTES).map_err(|trouble| error(trouble, info, 0, None))?;
    let bytes = window.bytes();
    if bytes.is_empty() {
        return Err(Error {
            kind: ErrorKind::Empty,
            offset: None,
            ..not_a_capture(info, "the file is empty".to_owned(), "capture again, or check that the capture was written out")
        });
    }
    FORMATS.iter().find(|format| bytes.starts_with(format.magic)).ok_or_else(|| {
        let first: Vec<String> = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        not_a_capture(
            info,
            format!("not a capture: it begins with {}", first.join(" ")),
            "give a pcap or pcapng file, plain or packed by gzip, zstd or lz4",
        )
    })
}

fn not_a_capture(info: &FileInfo, cause: String, remedy: &'static str) -> Error {
    Error { kind: ErrorKind::NotACapture, path: info.path.clone(), offset: Some(0), frame: None, cause, remedy }
}

/// The error that a trouble is, with the place where it was met.
fn error(trouble: Trouble, info: &FileInfo, offset: u64, frame: Option<u64>) -> Error {
    const KEPT: &str = "the frames before it are used; capture or copy it again for the rest";
    let (kind, cause, remedy) = match trouble {
        Trouble::Version(cause) => (ErrorKind::UnknownVersion, cause, "convert it with: editcap -F pcapng OLD NEW"),
        Trouble::Cut { what, needed, left } => {
            (ErrorKind::CutShort, format!("cut short inside {what}: {left} of {needed} bytes are there"), KEPT)
        }
        Trouble::Damaged(cause) => (ErrorKind::Damaged, cause, KEPT),
        Trouble::Read(cause) => match cause.kind() {
            io::ErrorKind::UnexpectedEof => (ErrorKind::CutShort, "the compressed stream is cut short".to_owned(), KEPT),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                (ErrorKind::Damaged, format!("the compressed stream is damaged: {cause}"), KEPT)
            }
            io::ErrorKind::NotFound => (ErrorKind::Unreadable, "no such file".to_owned(), "check the name"),
            io::ErrorKind::PermissionDenied => (ErrorKind::Unreadable, "permission denied".to_owned(), "check the file's permissions"),
            io::ErrorKind::IsADirectory => (ErrorKind::Unreadable, "it is a folder".to_owned(), "name the capture files in it"),
            _ => (ErrorKind::Unreadable, format!("it cannot be read: {cause}"), "check the file and the medium it is on"),
        },
    };
    let offset = (kind != ErrorKind::Unreadable).then_some(offset);
    Error { kind, path: info.path.clone(), offset, frame, cause, remedy }
}
