//! Compressed captures, unpacked as a stream: gzip (RFC 1952, several members), Zstandard (RFC 8878) and LZ4 frames.

use std::io;

use super::Stream;

/// Unpacks gzip.
pub(super) fn gzip(packed: Stream) -> io::Result<Stream> {
    Ok(Box::new(flate2::read::MultiGzDecoder::new(packed)))
}

/// Unpacks Zstandard.
pub(super) fn zstd(packed: Stream) -> io::Result<Stream> {
    Ok(Box::new(zstd::stream::read::Decoder::new(packed)?))
}

/// Unpacks LZ4 frames.
pub(super) fn lz4(packed: Stream) -> io::Result<Stream> {
    Ok(Box::new(lz4_flex::frame::FrameDecoder::new(packed)))
}
