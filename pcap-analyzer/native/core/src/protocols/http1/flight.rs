//! Requests whose response has not come: which of them a response answers (RFC 9112 §9.3.2).

use super::Head;
use crate::message::Side;
use std::collections::VecDeque;

/// Requests that are remembered at most.
const MOST: usize = 1 << 16;

/// A request, by its number in the connection from 1, and its method; number 0 and no method where it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Asked {
    pub number: u64,
    pub method: &'static str,
}

/// The requests of a connection that wait for their response, in their order.
#[derive(Debug, Default)]
pub(super) struct Flight {
    waiting: VecDeque<Asked>,
    last: Asked,
    /// Whether content of the last one is still on its way.
    is_being_sent: bool,
    /// Whether requests or responses may be missing since a response came.
    is_uncertain: bool,
}

impl Flight {
    /// A request whose head has come, as often as that is looked at.
    pub fn request(&mut self, method: &'static str) -> Asked {
        if !self.is_being_sent {
            self.last = Asked { number: self.last.number + 1, method };
            self.is_being_sent = true;
            if self.waiting.len() == MOST {
                self.waiting.pop_front();
                self.is_uncertain = true;
            }
            self.waiting.push_back(self.last);
        }
        self.last
    }

    /// The request that a response answers whose head has come. Behind a gap only one that waits alone can be it.
    pub fn answered(&mut self) -> Asked {
        if std::mem::take(&mut self.is_uncertain) && self.waiting.len() > 1 {
            self.waiting.clear();
        }
        self.waiting.front().copied().unwrap_or_default()
    }

    /// A message is complete. Interim responses (1xx) leave their request waiting.
    pub fn is_done(&mut self, head: &Head) {
        if head.is_request {
            self.is_being_sent = false;
        } else if !head.word.starts_with('1') || head.word == "101" {
            self.waiting.pop_front();
        }
    }

    /// Bytes of a direction are missing.
    pub fn gap(&mut self, from: Side) {
        self.is_uncertain = true;
        self.is_being_sent &= from == Side::Server;
    }
}
