//! What stops us: errors that name the file, the place in it, the cause and the remedy.

use std::fmt;

/// Why a capture could not be read (further).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The file does not exist or may not be read.
    Unreadable,
    /// The file holds no byte.
    Empty,
    /// The first bytes are of no capture format that we know.
    NotACapture,
    /// A capture format, but of a version that we do not know.
    UnknownVersion,
    /// The file ends inside a record, a block or a compressed stream.
    CutShort,
    /// A record or block contradicts itself; what follows cannot be found.
    Damaged,
    /// A tool that is needed is missing, or failed.
    Tool,
}

/// One line for a person: what, where, why and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What kind of trouble it is.
    pub kind: ErrorKind,
    /// The file as the user named it ("-" for standard input).
    pub path: String,
    /// Byte offset in the (decompressed) file, where known.
    pub offset: Option<u64>,
    /// Number of the last whole frame before the trouble, where frames were read.
    pub frame: Option<u64>,
    /// The cause, as a clause without a full stop.
    pub cause: String,
    /// What the user can do, as an imperative clause.
    pub remedy: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path)?;
        if let Some(frame) = self.frame {
            write!(f, "after frame {frame}: ")?;
        }
        if let Some(offset) = self.offset {
            write!(f, "offset {offset}: ")?;
        }
        write!(f, "{} ({})", self.cause, self.remedy)
    }
}

impl std::error::Error for Error {}
