//! Block-wise transfers under way (RFC 7959).

use super::codes::{code_of, is_success};
use super::options::BERT;
use crate::exchanges::ExchangeId;
use crate::message::{Message, Token};

/// 2.31 (RFC 7959 §2.9.1).
const CONTINUE: u8 = 95;

/// Transfers that are under way at once, at most: each is looked for among all. Of more, those whose last block is the oldest are forgotten.
const MOST: usize = 1 << 10;

/// What is to come of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    None,
    /// Blocks of the request's body.
    OfRequest,
    /// Blocks of the response's.
    OfResponse,
}

/// A block-wise transfer under way.
#[derive(Debug, Clone, Copy)]
struct Transfer {
    exchange: ExchangeId,
    subject: u64,
    tag: u64,
    token: Token,
    /// Offset at which the next block begins.
    next: u64,
    is_block1: bool,
}

/// The block that a message carries on: its offset and that of its end, and whether more follow. One of SZX 7 is as many blocks of 1,024 bytes as its
/// payload has (RFC 8323 §6).
fn block(message: &Message, is_block1: bool) -> Option<(u64, u64, bool)> {
    let row = &message.row;
    let (number, szx, more) =
        if is_block1 { (row.block1_num?, row.block1_szx?, row.block1_more?) } else { (row.block2_num?, row.block2_szx?, row.block2_more?) };
    let size = 16_u64 << szx.min(6);
    let offset = u64::from(number) * size;
    let length = if u32::from(szx) == BERT { u64::from(message.payload_bytes).max(size) } else { size };
    Some((offset, offset + length, more))
}

/// Whether a message asks for a block behind the first, or brings one.
#[inline]
pub(super) fn is_later_block(message: &Message) -> bool {
    message.row.block2_num.is_some_and(|number| number > 0)
}

/// The transfers of what one side asks for or sends in requests.
#[derive(Debug, Default)]
pub(super) struct Transfers(Vec<Transfer>);

impl Transfers {
    /// The transfer that a request for a later block carries on (RFC 7959 §2.4, §2.5; trap 12): its exchange, and the token of its last request.
    #[inline]
    pub(super) fn continued(&self, message: &Message) -> Option<(ExchangeId, Token)> {
        let is_block1 = block(message, true).is_some_and(|(offset, _, _)| offset > 0);
        let offset = if is_block1 { block(message, true) } else { block(message, false) }?.0;
        if offset == 0 {
            return None;
        }
        let fits = |transfer: &&Transfer| {
            transfer.subject == message.subject_hash && transfer.is_block1 == is_block1 && (transfer.tag == message.body_tag || !is_block1)
        };
        let same_token = self.0.iter().filter(fits).find(|transfer| transfer.token == message.token);
        let next_block = || self.0.iter().filter(fits).find(|transfer| transfer.next == offset);
        same_token.filter(|transfer| transfer.next >= offset).or_else(next_block).map(|transfer| (transfer.exchange, transfer.token))
    }

    /// Keeps a transfer's place. Returns whether more blocks are to come.
    pub(super) fn follow(&mut self, message: &Message, exchange: ExchangeId, is_request: bool) -> bool {
        // a request announces blocks of its own body, a response of its; Block1 in a response only acknowledges
        let Some((_, next, more)) = block(message, is_request) else { return false };
        if let Some(at) = self.0.iter().position(|transfer| transfer.exchange == exchange) {
            self.0.remove(at);
        }
        if more && self.0.len() >= MOST {
            self.0.remove(0);
        }
        if more {
            let (subject, tag, token) = (message.subject_hash, message.body_tag, message.token);
            self.0.push(Transfer { exchange, subject, tag, token, next, is_block1: is_request });
        }
        more
    }

    /// What is to come behind a response to a request of `exchange`.
    #[inline]
    pub(super) fn rest(&mut self, message: &Message, exchange: ExchangeId) -> Rest {
        if code_of(message) == Some(CONTINUE) || self.is_step(message, exchange) {
            Rest::OfRequest
        } else if self.follow(message, exchange, false) {
            Rest::OfResponse
        } else {
            Rest::None
        }
    }

    /// Whether a response answers only one block of the request's body: a server that keeps no state between blocks answers each as if it were
    /// all (RFC 7959 §2.3, Figure 8).
    fn is_step(&self, message: &Message, exchange: ExchangeId) -> bool {
        message.row.block1_num.is_some() && is_success(message) && self.is_sending(exchange)
    }

    fn is_sending(&self, exchange: ExchangeId) -> bool {
        self.0.iter().any(|transfer| transfer.is_block1 && transfer.exchange == exchange)
    }

    /// Keeps the request of the transfer that a response belongs to: what it is about and its token. Returns whether there is one.
    pub(super) fn answered(&mut self, exchange: ExchangeId, subject: u64, token: Token) -> bool {
        let Some(transfer) = self.0.iter_mut().find(|transfer| transfer.exchange == exchange) else { return false };
        (transfer.subject, transfer.token) = (subject, token);
        true
    }

    /// Gives a transfer up.
    pub(super) fn remove(&mut self, exchange: ExchangeId) {
        self.retain(|known| known != exchange);
    }

    /// Gives transfers up but those of exchanges that are to be kept.
    pub(super) fn retain(&mut self, is_kept: impl Fn(ExchangeId) -> bool) {
        self.0.retain(|transfer| is_kept(transfer.exchange));
    }
}
