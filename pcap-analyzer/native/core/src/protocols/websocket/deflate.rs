//! permessage-deflate (RFC 7692): what compressed messages held before.

use flate2::{Decompress, FlushDecompress, Status};

/// Content up to this size is handed on; of more, only the size is counted.
const MOST_CONTENT: usize = 1 << 20;

/// What a sender leaves away at the end of a message (RFC 7692 §7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// One direction's messages, whose compression goes on from one to the next (RFC 7692 §7.1.1).
#[derive(Debug, Default)]
pub(super) struct Inflater {
    state: State,
    is_in_compressed: bool,
    is_without_context: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Fresh,
    Running(Box<Decompress>),
    /// Bytes were missing, or are no deflated data: what follows cannot be read.
    Lost,
}

/// Content of a frame as it was before compression.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plain {
    pub bytes: usize,
    /// The content; none where it is larger than what is kept.
    pub content: Option<Vec<u8>>,
}

impl Inflater {
    /// A direction at its start, and whether each of its messages is compressed by itself.
    pub fn new(is_without_context: bool) -> Self {
        Self { is_without_context, ..Self::default() }
    }

    /// Bytes are missing.
    pub fn lose(&mut self) {
        self.state = State::Lost;
    }

    /// The content of a data frame: `starts` tells whether it is a message's first frame and then, whether this is compressed (RSV1); None for a
    /// continuation. None where it cannot be known.
    pub fn frame(&mut self, content: &[u8], is_whole: bool, starts: Option<bool>, is_last: bool) -> Option<Plain> {
        if let Some(is_compressed) = starts {
            self.is_in_compressed = is_compressed;
            if is_compressed && self.is_without_context {
                self.state = State::Fresh;
            }
        }
        if !self.is_in_compressed {
            return is_whole.then(|| Plain { bytes: content.len(), content: Some(content.to_vec()) });
        }
        let plain = if is_whole { self.inflate(content, is_last) } else { None };
        if plain.is_none() {
            self.state = State::Lost;
        }
        plain
    }

    fn inflate(&mut self, content: &[u8], is_last: bool) -> Option<Plain> {
        if matches!(self.state, State::Fresh) {
            self.state = State::Running(Box::new(Decompress::new(false)));
        }
        let State::Running(running) = &mut self.state else { return None };
        let mut plain = Plain { bytes: 0, content: Some(Vec::new()) };
        run(running, content, &mut plain)?;
        if is_last {
            run(running, &TAIL, &mut plain)?;
        }
        Some(plain)
    }
}

/// Inflates all of `compressed`. A final block ends the compression, and the next begins anew (RFC 7692 §7.2.3.4).
fn run(state: &mut Decompress, compressed: &[u8], plain: &mut Plain) -> Option<()> {
    let (mut rest, mut buffer) = (compressed, [0; 8192]);
    loop {
        let (read, written) = (state.total_in(), state.total_out());
        let status = state.decompress(rest, &mut buffer, FlushDecompress::Sync).ok()?;
        let read = usize::try_from(state.total_in() - read).ok()?;
        let written = usize::try_from(state.total_out() - written).ok()?;
        plain.add(buffer.get(..written)?);
        rest = rest.get(read..)?;
        if status == Status::StreamEnd {
            state.reset(false);
        }
        if rest.is_empty() && written < buffer.len() {
            return Some(());
        }
        if read == 0 && written == 0 {
            return None;
        }
    }
}

impl Plain {
    fn add(&mut self, more: &[u8]) {
        self.bytes += more.len();
        self.content = self.content.take().filter(|content| content.len() + more.len() <= MOST_CONTENT);
        if let Some(content) = &mut self.content {
            content.extend_from_slice(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(inflater: &mut Inflater, content: &[u8], starts: Option<bool>, is_last: bool) -> Option<Vec<u8>> {
        inflater.frame(content, true, starts, is_last)?.content
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        // RFC 7692 §7.2.3.1: one frame, then two frames
        let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
        assert_eq!(Some(b"Hello".to_vec()), text(&mut Inflater::default(), &hello, Some(true), true));
        let mut two = Inflater::default();
        let first = text(&mut two, &hello[..3], Some(true), false).unwrap();
        let second = text(&mut two, &hello[3..], None, true).unwrap();
        assert_eq!(b"Hello".to_vec(), [first, second].concat());
        // §7.2.3.2: the second message refers to the first
        let mut shared = Inflater::default();
        assert_eq!(Some(b"Hello".to_vec()), text(&mut shared, &hello, Some(true), true));
        assert_eq!(Some(b"Hello".to_vec()), text(&mut shared, &[0xf2, 0x00, 0x11, 0x00, 0x00], Some(true), true));
        // §7.2.3.3: a block without compression; §7.2.3.4: a final block, and what follows it; §7.2.3.5: two blocks
        let stored = [0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00];
        assert_eq!(Some(b"Hello".to_vec()), text(&mut Inflater::default(), &stored, Some(true), true));
        let mut last = Inflater::default();
        assert_eq!(Some(b"Hello".to_vec()), text(&mut last, &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00], Some(true), true));
        assert_eq!(Some(b"Hello".to_vec()), text(&mut last, &hello, Some(true), true));
        let blocks = [0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00];
        assert_eq!(Some(b"Hello".to_vec()), text(&mut Inflater::default(), &blocks, Some(true), true));
    }

    #[test]
    fn what_is_lost_stays_lost_unless_each_message_stands_alone() {
        let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
        for (is_without_context, expected) in [(false, None), (true, Some(b"Hello".to_vec()))] {
            let mut inflater = Inflater::new(is_without_context);
            assert_eq!(None, inflater.frame(&hello[..2], false, Some(true), true));
            assert_eq!(expected, text(&mut inflater, &hello, Some(true), true));
        }
    }

    #[test]
    fn a_plain_message_stays_as_it_is() {
        assert_eq!(Some(b"Hi".to_vec()), text(&mut Inflater::default(), b"Hi", Some(false), true));
    }
}
