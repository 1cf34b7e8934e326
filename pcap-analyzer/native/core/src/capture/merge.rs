//! One input in its own order, or several merged by time. A file of several is opened when its turn comes, so that a ring buffer of a thousand
//! files needs no more memory than those that overlap in time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use super::file::File;
use super::{FileInfo, Frame, Input, Source};
use crate::error::{Error, ErrorKind};

/// How much is read of a file at a time.
const BLOCK_BYTES: usize = 64 * 1024;
/// How much is read of each of several files to learn when it begins.
const GLANCE_BYTES: usize = 4 * 1024;

/// Opens the inputs; see [`super::open`].
pub(super) fn open(mut inputs: Vec<Input>) -> Result<Box<dyn Source>, Error> {
    if inputs.len() != 1 {
        return Ok(Box::new(Merge::new(inputs)?));
    }
    let input = inputs.pop().unwrap_or(Input::Standard);
    match File::open(input, 0, BLOCK_BYTES) {
        Ok(file) => Ok(Box::new(One(file))),
        Err(info) => Err(failure(&info)),
    }
}

/// A single input.
struct One(File);

impl Source for One {
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Error> {
        self.0.advance();
        Ok(self.0.frame())
    }

    fn files(&self) -> Vec<FileInfo> {
        vec![self.0.info().clone()]
    }
}

/// One of several inputs.
enum Slot {
    /// Looked at; it is opened again for its first frame.
    Waiting(PathBuf),
    /// Being read; it stands at its next frame.
    Open(Box<File>),
    /// Read to its end, or not readable.
    Ended(Box<FileInfo>),
}

/// Several inputs: always the frame with the earliest time among those that they stand at.
struct Merge {
    slots: Vec<Slot>,
    /// Time and slot of the frames that are next in their inputs, but for the current one.
    upcoming: BinaryHeap<Reverse<(i64, usize)>>,
    current: Option<usize>,
}

impl Merge {
    /// Looks at all inputs; an error where none can be read.
    fn new(inputs: Vec<Input>) -> Result<Self, Error> {
        let mut merge = Self { slots: Vec::with_capacity(inputs.len()), upcoming: BinaryHeap::new(), current: None };
        let mut readable = inputs.is_empty();
        for (index, input) in inputs.into_iter().enumerate() {
            match glance(input, index) {
                Ok((slot, time)) => {
                    readable = true;
                    merge.slots.push(slot);
                    merge.upcoming.extend(time.map(|time| Reverse((time, index))));
                }
                Err(info) => merge.slots.push(Slot::Ended(info)),
            }
        }
        match merge.slots.first() {
            Some(Slot::Ended(info)) if !readable => Err(failure(info)),
            _ => Ok(merge),
        }
    }

    /// Takes the current input on to its next frame.
    fn step(&mut self) {
        let Some(index) = self.current.take() else { return };
        let Some(slot) = self.slots.get_mut(index) else { return };
        let Slot::Open(file) = slot else { return };
        match file.advance() {
            Some(time) => self.upcoming.push(Reverse((time, index))),
            None => *slot = Slot::Ended(Box::new(file.info().clone())),
        }
    }

    /// Opens an input whose turn it is; false where that fails although it could be read before.
    fn wake(&mut self, index: usize) -> bool {
        let Some(slot) = self.slots.get_mut(index) else {
            return false;
        };
        let Slot::Waiting(path) = slot else {
            return matches!(slot, Slot::Open(_));
        };
        match File::open(Input::Path(std::mem::take(path)), file_number(index), BLOCK_BYTES) {
            Ok(mut file) => {
                file.advance();
                *slot = Slot::Open(Box::new(file));
                true
            }
            Err(info) => {
                *slot = Slot::Ended(info);
                false
            }
        }
    }
}

impl Source for Merge {
    fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Error> {
        self.step();
        while let Some(Reverse((_, index))) = self.upcoming.pop() {
            if self.wake(index) {
                self.current = Some(index);
                break;
            }
        }
        Ok(self.current.and_then(|index| match self.slots.get(index) {
            Some(Slot::Open(file)) => file.frame(),
            _ => None,
        }))
    }

    fn files(&self) -> Vec<FileInfo> {
        let info = |slot: &Slot| match slot {
            Slot::Waiting(path) => FileInfo { path: path.display().to_string(), ..FileInfo::default() },
            Slot::Open(file) => file.info().clone(),
            Slot::Ended(info) => FileInfo::clone(info),
        };
        self.slots.iter().map(info).collect()
    }
}

/// Opens an input far enough to know the time of its first frame.
fn glance(input: Input, index: usize) -> Result<(Slot, Option<i64>), Box<FileInfo>> {
    let path = match &input {
        Input::Path(path) if path.is_file() => Some(path.clone()),
        _ => None,
    };
    let block_bytes = if path.is_some() { GLANCE_BYTES } else { BLOCK_BYTES };
    let mut file = File::open(input, file_number(index), block_bytes)?;
    let time = file.advance();
    Ok(match (path, time) {
        (Some(path), Some(_)) => (Slot::Waiting(path), time),
        (_, Some(_)) => (Slot::Open(Box::new(file)), time),
        (_, None) => (Slot::Ended(Box::new(file.info().clone())), None),
    })
}

fn file_number(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

/// Why an input could not be opened.
fn failure(info: &FileInfo) -> Error {
    let unknown = || Error {
        kind: ErrorKind::Unreadable,
        path: info.path.clone(),
        offset: None,
        frame: None,
        cause: "it cannot be opened".to_owned(),
        remedy: "check the file",
    };
    info.damage.clone().unwrap_or_else(unknown)
}
