//! Compressed captures, unpacked as a stream: gzip (RFC 1952, several members), Zstandard (RFC 8878) and LZ4 frames.

use lz4_flex::frame::{Error as Lz4Error, FrameDecoder};
use std::io::{self, Read};

use super::Stream;

/// Unpacks gzip.
pub(super) fn gzip(packed: Stream) -> io::Result<Stream> {
    Ok(Box::new(flate2::read::MultiGzDecoder::new(packed)))
}

/// Unpacks Zstandard.
pub(super) fn zstd(packed: Stream) -> io::Result<Stream> {
    Ok(Box::new(Unpacked(zstd::stream::read::Decoder::new(packed)?)))
}

/// Unpacks LZ4 frames.
pub(super) fn lz4(packed: Stream) -> io::Result<Stream> {
    let decoder = FrameDecoder::new(Packed { stream: packed, is_at_end: false });
    Ok(Box::new(Unpacked(Lz4Frames { decoder, is_between_frames: true })))
}

/// What a decoder unpacks. The decoders tell damage as an error of no kind.
struct Unpacked<R>(R);

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into).map_err(|error| match error.kind() {
            io::ErrorKind::Other => io::Error::new(io::ErrorKind::InvalidData, error),
            _ => error,
        })
    }
}

/// A packed stream that remembers whether it was read to its end.
struct Packed {
    stream: Stream,
    is_at_end: bool,
}

impl Read for Packed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(into)?;
        self.is_at_end |= count == 0 && !into.is_empty();
        Ok(count)
    }
}

/// LZ4 frames one after another, skippable ones among them. The decoder says "nothing more" at the end of each of them, and where the stream is cut
/// between two blocks.
struct Lz4Frames {
    decoder: FrameDecoder<Packed>,
    is_between_frames: bool,
}

impl Read for Lz4Frames {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.decoder.read(into) {
                Ok(0) if into.is_empty() => return Ok(0),
                Ok(0) if !self.decoder.get_ref().is_at_end => self.is_between_frames = true,
                Ok(0) if self.is_between_frames => return Ok(0),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.is_between_frames = false;
                    return Ok(count);
                }
                Err(error) => {
                    let length = skippable(&error).ok_or(error)?;
                    io::copy(&mut self.decoder.get_mut().take(length), &mut io::sink())?;
                }
            }
        }
    }
}

/// The length of a frame that is to be passed over, where that is what the decoder met.
fn skippable(error: &io::Error) -> Option<u64> {
    match error.get_ref()?.downcast_ref()? {
        Lz4Error::SkippableFrame(length) => Some(u64::from(*length)),
        _ => None,
    }
}
