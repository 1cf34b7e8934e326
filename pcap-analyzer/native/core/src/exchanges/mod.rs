//! Remembers who waits for an answer: the exchanges that are open, whatever their protocol, and what became of them.

mod linking;
mod links;
mod open;

pub use linking::Linker;
pub use links::PublicationId;
pub use open::{Event, Exchange, ExchangeId, Exchanges, Outcome, Sample, Timing};

/// Where and when a message became complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// Session number.
    pub session: u32,
    /// Which input.
    pub file: u16,
    /// Which of the members of a group the message is from or to, from 1; 0 where the conversation is with one endpoint, and for the group itself.
    pub member: u16,
    /// Frame.
    pub frame: u64,
    /// Capture time in nanoseconds.
    pub time_ns: i64,
}

/// What a data message asks of its receiver, or an acknowledgement does for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acknowledgement {
    /// Neither data that asks for one nor one.
    #[default]
    None,
    /// Data in the message's exchange, which its receiver has to acknowledge (CON, QoS 1, QoS 2).
    Expected,
    /// The receiver's (last) acknowledgement of the data of the message's exchange (ACK, PUBACK, PUBCOMP): Time2 of Study A.
    Given,
}

/// What a message is in its exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Placement {
    /// The exchange it belongs to.
    pub exchange: Option<ExchangeId>,
    /// Whether it brings data for the first time (metrics.md, Vocabulary).
    pub is_data: bool,
    /// Whether its sender sent it before.
    pub is_retransmission: bool,
    /// Whether it did so in an earlier connection, of whose session this one goes on.
    pub is_of_earlier_connection: bool,
    /// Whether it answers what is not there.
    pub is_unmatched: bool,
    /// Whether it tells that its receiver refuses what it acknowledges.
    pub is_refusal: bool,
    /// Its part in acknowledging data.
    pub acknowledgement: Acknowledgement,
}

impl Placement {
    /// An answer to nothing that is known.
    pub const UNMATCHED: Self = Self {
        exchange: None,
        is_data: false,
        is_retransmission: false,
        is_of_earlier_connection: false,
        is_unmatched: true,
        is_refusal: false,
        acknowledgement: Acknowledgement::None,
    };

    /// What belongs to an exchange and is nothing more.
    #[must_use]
    pub const fn of(exchange: ExchangeId) -> Self {
        Self { exchange: Some(exchange), is_unmatched: false, ..Self::UNMATCHED }
    }
}
