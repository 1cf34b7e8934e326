//! What messages tell of their session in words: protocol, version, protection, who talks.

use super::entries::Words;
use super::Session;
use crate::message::Side;
use crate::schema::Text;

impl Session {
    /// What its records hold is of `protocol`; where they were opened, what is known of the security protocol is its protection.
    pub(crate) fn carries(&mut self, protocol: &'static str, is_opened: bool) {
        self.row.protocol = protocol;
        self.is_opened |= is_opened;
        if is_opened && self.row.security.get().is_none() {
            let version = self.row.version.get().map(str::to_owned);
            self.keep_protection(version.as_deref());
        }
    }

    /// Writes down what protects the session's messages, as far as it is known.
    fn keep_protection(&mut self, version: Option<&str>) {
        let words = protection(version, self.row.cipher_suite.get());
        keep_last(&mut self.row.security, Some(words.as_str()).filter(|words| !words.is_empty()));
    }

    /// Takes from a message, of the security protocol where `is_protection`, what the session's row tells in words.
    pub(crate) fn tells(&mut self, words: &Words, from: Side, is_protection: bool) {
        if self.is_stopped() {
            return;
        }
        if let Some(version) = words.version {
            keep_last(&mut self.row.cipher_suite, words.cipher_suite.as_deref());
            if from == Side::Server {
                keep_last(&mut self.row.alpn, words.alpn.as_deref());
            }
            if is_protection && self.is_opened {
                self.keep_protection(Some(version));
            } else {
                self.row.version.set(version);
            }
        }
        if let Some(protection) = words.protection {
            self.row.security.set(protection);
        }
        for (known, told) in [
            (&mut self.row.client_identifier, &words.client_identifier),
            (&mut self.row.connection_id, &words.connection_id),
            (&mut self.row.server_name, &words.server_name),
        ] {
            keep_first(known, told.as_deref());
        }
        if let Some(authentication) = words.authentication {
            let known = self.row.authentication.get().unwrap_or("");
            if !known.split(", ").any(|word| word == authentication) {
                self.row.authentication.more(", ").push_str(authentication);
            }
        }
    }
}

fn keep_first(known: &mut Text, told: Option<&str>) {
    if let (None, Some(told)) = (known.get(), told) {
        known.set(told);
    }
}

fn keep_last(known: &mut Text, told: Option<&str>) {
    if let Some(told) = told {
        known.set(told);
    }
}

/// Version and cipher suite as one text.
pub(super) fn protection(version: Option<&str>, cipher_suite: Option<&str>) -> String {
    [version, cipher_suite].into_iter().flatten().collect::<Vec<_>>().join(" ")
}
