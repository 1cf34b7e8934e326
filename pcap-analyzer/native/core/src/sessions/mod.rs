//! Adds up, session by session, as long as the capture lasts; never divides.

mod counts;
mod samples;

pub use counts::{add_sums, without_message, Choices, Direction, KindCount, PartSums, Session};
pub use samples::Samples;

use crate::exchanges::Event;
use crate::message::Side;
use crate::schema::{directions, kinds, sessions, timings};

/// All sessions of the capture.
#[derive(Debug, Default)]
pub struct Sessions {
    sessions: Vec<Session>,
}

impl Sessions {
    /// Adds a session; `make` is told its number.
    pub fn add(&mut self, make: impl FnOnce(u32) -> Session) -> u32 {
        let number = u32::try_from(self.sessions.len()).unwrap_or(u32::MAX);
        self.sessions.push(make(number));
        number
    }

    /// A session by its number.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Session> {
        self.sessions.get_mut(number as usize)
    }

    /// All sessions in the order of their numbers.
    #[must_use]
    pub fn all(&self) -> &[Session] {
        &self.sessions
    }

    /// Takes in what the exchanges report.
    pub fn take(&mut self, event: &Event) {
        match *event {
            Event::Sample { session, timing, kind, time_ns, is_retransmitted } => {
                if let Some(session) = self.get_mut(session) {
                    session.sample(timing, kind, time_ns, is_retransmitted);
                }
            }
            Event::Ended { session, outcome } => {
                if let Some(session) = self.get_mut(session) {
                    session.ended(outcome);
                }
            }
            Event::Undelivered { session } => {
                if let Some(session) = self.get_mut(session) {
                    session.undelivered += 1;
                }
            }
            Event::PublisherLeg { session, from, ref parts } => {
                if let Some(session) = self.get_mut(session) {
                    session.publisher_leg(from, parts);
                }
            }
        }
    }
}

impl Session {
    /// Who sends the data: the side with more data messages; where they are encrypted, the side whose records hold more, since padding can
    /// make an acknowledgement as long as a small message (trap 86).
    #[must_use]
    pub fn data_sender(&self) -> Side {
        let [client, server] = &self.directions;
        let [.., hidden_by_client] = client.data_parts;
        let [.., hidden_by_server] = server.data_parts;
        if (hidden_by_client, client.data_messages) > (hidden_by_server, server.data_messages) {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Its row of the table `sessions`.
    #[must_use]
    pub fn session_row(&self) -> sessions::Row {
        let mut row = self.row.clone();
        row.receiver = match self.data_sender() {
            Side::Client => "server",
            Side::Server => "client",
        };
        if row.security.get().is_none() {
            match (row.time1_security_ns, row.cipher_suite.get()) {
                (None, _) => row.security.set("none"),
                (Some(_), suite) => {
                    let words = [row.version.get(), suite].into_iter().flatten().collect::<Vec<_>>().join(" ");
                    row.security.set(&words);
                }
            }
        }
        row
    }

    /// Its rows of the table `directions`.
    pub fn direction_rows(&self) -> impl Iterator<Item = directions::Row> + '_ {
        self.directions.iter().zip(["c2s", "s2c"]).map(|(sums, direction)| directions::Row {
            session: self.row.session,
            direction,
            data_messages: sums.data_messages,
            data_bytes: sums.data_bytes,
            data_first_ns: sums.data_first_ns,
            data_last_ns: sums.data_last_ns,
            data_last_ack_ns: sums.data_last_ack_ns,
            is_ack_expected: sums.last_data.is_some(),
            received_until_time2: sums.received_until_time2.to_vec(),
            data_parts: sums.data_parts.to_vec(),
            control_parts: sums.control_parts.to_vec(),
            control_frames: sums.control_frames,
            publisher_parts: sums.publisher_parts.to_vec(),
            unassigned_parts: sums.unassigned_parts.to_vec(),
        })
    }

    /// Its rows of the table `kinds`.
    pub fn kind_rows(&self) -> impl Iterator<Item = kinds::Row> + '_ {
        self.kinds.iter().map(|count| kinds::Row {
            session: self.row.session,
            direction: count.from.direction(),
            protocol: count.protocol,
            kind: count.kind,
            variant: count.variant,
            messages: count.messages,
            message_bytes_min: count.bytes_min,
            message_bytes_max: count.bytes_max,
            parts: count.parts.to_vec(),
        })
    }

    /// Its rows of the table `timings`.
    pub fn timing_rows(&self) -> impl Iterator<Item = timings::Row> + '_ {
        self.timings.iter().map(|(timing, kind, samples)| {
            let quantiles = samples.quantiles(&[0.5, 0.95, 0.99]);
            let quantile = |at: usize| quantiles.get(at).copied().unwrap_or(0);
            timings::Row {
                session: self.row.session,
                timing: timing.name(),
                kind,
                count: samples.count,
                retransmitted: samples.retransmitted,
                negative: samples.negative,
                sum_ns: samples.sum_ns(),
                squared_deviations_ns2: samples.squared_deviations_ns2(),
                min_ns: if samples.count == 0 { 0 } else { samples.min_ns },
                median_ns: quantile(0),
                p95_ns: quantile(1),
                p99_ns: quantile(2),
                max_ns: if samples.count == 0 { 0 } else { samples.max_ns },
            }
        })
    }
}
