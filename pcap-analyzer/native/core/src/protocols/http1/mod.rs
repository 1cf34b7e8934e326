//! HTTP/1.0 and 1.1 (RFC 9112).
//!
//! One message is one request or response; of a chunked body each chunk is a message of its own, of a body that ends with the connection each run of
//! bytes. Byte columns: start line, fields and chunk framing are header, content is payload. Content that is encoded (compressed) counts as on the wire.

mod pairing;

pub(super) use pairing::Turns;

use super::{Carrier, Decoder, Input, Likely, Malformed, Port, Protocol, Step};
use crate::message::{Message, Side};

/// HTTP/1.1.
pub const HTTP1: Protocol = Protocol {
    name: "http",
    decode_as: "http",
    standards: &["RFC 9110", "RFC 9112"],
    carrier: Carrier::Stream,
    is_security: false,
    carries: None,
    ports: PORTS,
    probe,
    connection_id: None,
    decoder: |_| Box::<Http1>::default(),
    pairing: || Box::<Turns>::default(),
    wireshark: &[("http.request.method", "variant"), ("http.response.code", "variant")],
};

/// HTTP's port, and those on which it is found as a rule (IANA: http, http-alt, and the ones that servers take without privileges).
pub(super) const PORTS: &[Port] = &[Port::Tcp(80), Port::Tcp(8080), Port::Tcp(8000), Port::Tcp(8008), Port::Tls(443), Port::Tls(8443)];

/// HTTP Method Registry (IANA), and those of UPnP.
const METHODS: [&str; 43] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "ACL",
    "BASELINE-CONTROL",
    "BIND",
    "CHECKIN",
    "CHECKOUT",
    "COPY",
    "LABEL",
    "LINK",
    "LOCK",
    "MERGE",
    "MKACTIVITY",
    "MKCALENDAR",
    "MKCOL",
    "MKREDIRECTREF",
    "MKWORKSPACE",
    "MOVE",
    "ORDERPATCH",
    "PROPFIND",
    "PROPPATCH",
    "QUERY",
    "REBIND",
    "REPORT",
    "SEARCH",
    "UNBIND",
    "UNCHECKOUT",
    "UNLINK",
    "UNLOCK",
    "UPDATE",
    "UPDATEREDIRECTREF",
    "VERSION-CONTROL",
    "NOTIFY",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "M-SEARCH",
];
/// Status codes in use (IANA HTTP Status Code Registry).
const STATUSES: [&str; 62] = [
    "100", "101", "102", "103", "200", "201", "202", "203", "204", "205", "206", "207", "208", "226", "300", "301", "302", "303", "304",
    "305", "307", "308", "400", "401", "402", "403", "404", "405", "406", "407", "408", "409", "410", "411", "412", "413", "414", "415",
    "416", "417", "418", "421", "422", "423", "424", "425", "426", "428", "429", "431", "451", "500", "501", "502", "503", "504", "505",
    "506", "507", "508", "510", "511",
];
/// Protocols that a connection goes on in behind 101 (RFC 9110 §7.8; "h2c" was RFC 7540's §3.2): name, and the row that decodes it.
const UPGRADES: [(&str, &str); 1] = [("h2c", "http2")];
/// Longest head that is waited for.
const MOST_HEAD: usize = 1 << 16;

/// How a message's content ends (RFC 9112 §6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// After so many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    Close,
}

/// What a head tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub bytes: usize,
    /// The method, or the status code.
    pub word: &'static str,
    pub is_request: bool,
    pub body: Body,
    /// The protocol that the connection changes to: Upgrade, lower case.
    pub upgrade: Option<String>,
    /// Sec-WebSocket-Protocol (RFC 6455 §11.3.4).
    pub subprotocol: Option<String>,
    /// Sec-WebSocket-Extensions (RFC 6455 §11.3.2).
    pub extensions: Option<String>,
    target: String,
}

/// Why there is no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoHead {
    /// It has not ended yet.
    Unfinished,
    /// It is none.
    Broken(usize, &'static str),
}

/// Reads a head (RFC 9112 §2.1).
pub(super) fn head(bytes: &[u8]) -> Result<Head, NoHead> {
    if !could_begin(bytes) {
        return Err(NoHead::Broken(0, "start line is neither a request's nor a response's"));
    }
    let window = bytes.get(..MOST_HEAD.min(bytes.len())).unwrap_or(bytes);
    let Some((end, after)) = end_of_head(window) else {
        return Err(if bytes.len() >= MOST_HEAD { NoHead::Broken(MOST_HEAD, "head does not end") } else { NoHead::Unfinished });
    };
    let text = String::from_utf8_lossy(window.get(..end).unwrap_or(&[]));
    let mut lines = text.lines();
    let line = lines.next().unwrap_or("");
    let mut head = start_line(line).ok_or(NoHead::Broken(0, "start line"))?;
    head.bytes = after;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        field(&mut head, &name.to_ascii_lowercase(), value.trim());
    }
    Ok(head)
}

/// Where the empty line begins, and where what follows it does. A line may end without CR (RFC 9112 §2.2).
fn end_of_head(bytes: &[u8]) -> Option<(usize, usize)> {
    let ends = bytes.iter().enumerate().filter(|(_, &byte)| byte == b'\n').map(|(at, _)| at + 1);
    ends.filter_map(|end| match bytes.get(end..)? {
        [b'\n', ..] => Some((end, end + 1)),
        [b'\r', b'\n', ..] => Some((end, end + 2)),
        _ => None,
    })
    .next()
}

/// RFC 9112 §3, §4
fn start_line(line: &str) -> Option<Head> {
    let (first, rest) = line.split_once(' ')?;
    let is_request = !first.starts_with("HTTP/");
    let word = if is_request { find(&METHODS, first)? } else { find(&STATUSES, rest.get(..3)?)? };
    let target = if is_request { rest.rsplit_once(' ').map_or(rest, |(target, _)| target) } else { "" };
    let has_no_body = is_request || word.starts_with('1') || word == "204" || word == "304";
    let body = if has_no_body { Body::Length(0) } else { Body::Close };
    Some(Head { bytes: 0, word, is_request, body, upgrade: None, subprotocol: None, extensions: None, target: target.to_owned() })
}

fn find(words: &[&'static str], word: &str) -> Option<&'static str> {
    words.iter().copied().find(|known| *known == word)
}

/// RFC 9112 §6, RFC 9110 §7.8, RFC 6455 §4
fn field(head: &mut Head, name: &str, value: &str) {
    let is_without = !head.is_request && (head.word.starts_with('1') || head.word == "204" || head.word == "304");
    match name {
        "content-length" if head.body != Body::Chunked && !is_without => {
            if let Ok(length) = value.parse() {
                head.body = Body::Length(length);
            }
        }
        "transfer-encoding" if value.to_ascii_lowercase().ends_with("chunked") => head.body = Body::Chunked,
        "upgrade" => head.upgrade = Some(value.to_ascii_lowercase()),
        "sec-websocket-extensions" => head.extensions = Some(value.to_ascii_lowercase()),
        "sec-websocket-protocol" => head.subprotocol = Some(value.to_ascii_lowercase()),
        _ => {}
    }
}

/// Whether these bytes, as far as they go, begin as a request or a response does.
fn could_begin(bytes: &[u8]) -> bool {
    let begins = |word: &str, end: &[u8]| {
        let whole: Vec<u8> = word.bytes().chain(end.iter().copied()).collect();
        let common = whole.len().min(bytes.len());
        whole.get(..common) == bytes.get(..common)
    };
    begins("HTTP/1.", b"") || METHODS.iter().any(|method| begins(method, b" "))
}

/// Fills in what a head shows.
pub(super) fn show(head: &Head, message: &mut Message) {
    message.row.kind = if head.is_request { "Request" } else { "Response" };
    message.row.variant = head.word;
    message.row.header_bytes = count(head.bytes);
    message.facts.version = Some("HTTP/1.1");
    message.facts.is_opening = head.is_request;
    if head.is_request {
        message.subject_hash = crate::bytes::hash(head.target.as_bytes());
        if message.wants_text {
            message.row.uri_path.set(head.target.split('?').next().unwrap_or(""));
            if let Some((_, query)) = head.target.split_once('?') {
                message.row.uri_query.set(query);
            }
        }
    }
}

/// The method, where it is registered.
pub(super) fn method(word: &str) -> Option<&'static str> {
    find(&METHODS, word)
}

/// The status code, where it is registered.
pub(super) fn status(word: &str) -> Option<&'static str> {
    find(&STATUSES, word)
}

pub(super) fn count(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// What a direction stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Within {
    /// Between messages.
    #[default]
    Nothing,
    /// A body in chunks.
    Chunks,
    /// A body that ends with the connection.
    Rest,
}

#[derive(Debug, Default)]
struct Http1 {
    within: [Within; 2],
    /// Methods of the requests in flight: the response to HEAD has no content, that to CONNECT opens a tunnel (RFC 9112 §6.3).
    methods: std::collections::VecDeque<&'static str>,
}

/// Requests in flight that are remembered at most.
const PIPELINED: usize = 1024;

impl Decoder for Http1 {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        match self.within.get(from.index()).copied().unwrap_or_default() {
            Within::Nothing => self.begin(input, from, message),
            Within::Chunks => self.chunk(input, from, message),
            Within::Rest => {
                message.row.kind = "Content";
                message.row.payload_bytes = count(input.wire_bytes);
                message.payload_range = 0..input.bytes.len();
                Step::Message { len: input.wire_bytes }
            }
        }
    }

    fn is_boundary(&self, bytes: &[u8], _: Side) -> bool {
        probe(bytes) == Likely::Yes
    }
}

impl Http1 {
    fn begin(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let head = match head(input.bytes) {
            Ok(head) => head,
            Err(NoHead::Unfinished) if input.bytes.len() < input.wire_bytes => return cut(input, message),
            Err(NoHead::Unfinished) => return Step::NeedMore { at_least: input.wire_bytes + 1 },
            Err(NoHead::Broken(offset, field)) => {
                return Step::Malformed { len: input.wire_bytes, why: Malformed { offset, field, section: "RFC 9112 §2.1" } };
            }
        };
        let body = self.body(&head);
        let length = match body {
            Body::Length(length) => usize::try_from(length).unwrap_or(usize::MAX),
            Body::Chunked | Body::Close => 0,
        };
        let len = head.bytes.saturating_add(length);
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        let is_end = self.is_end(&head);
        self.remember(&head);
        if is_end {
            self.within = [Within::Rest; 2];
        } else if let Some(within) = self.within.get_mut(from.index()) {
            *within = match body {
                Body::Length(_) => Within::Nothing,
                Body::Chunked => Within::Chunks,
                Body::Close => Within::Rest,
            };
        }
        show(&head, message);
        message.carries_on = UPGRADES.iter().find(|(word, _)| is_end && head.upgrade.as_deref() == Some(word)).map(|(_, row)| *row);
        message.row.payload_bytes = count(length);
        message.payload_range = head.bytes..len.min(input.bytes.len());
        Step::Message { len }
    }

    /// How the content ends, where the request counts too.
    fn body(&self, head: &Head) -> Body {
        match self.methods.front() {
            Some(&"HEAD") if !head.is_request => Body::Length(0),
            Some(&"CONNECT") if !head.is_request && head.word.starts_with('2') => Body::Close,
            _ if head.word == "101" => Body::Close,
            _ => head.body,
        }
    }

    /// Whether the response makes the connection another protocol's: a tunnel (RFC 9110 §9.3.6), an upgrade (§7.8).
    fn is_end(&self, head: &Head) -> bool {
        head.word == "101" || (!head.is_request && head.word.starts_with('2') && self.methods.front() == Some(&"CONNECT"))
    }

    fn remember(&mut self, head: &Head) {
        if head.is_request && self.methods.len() < PIPELINED {
            self.methods.push_back(head.word);
        } else if !head.is_request && !head.word.starts_with('1') {
            self.methods.pop_front();
        }
    }

    /// RFC 9112 §7.1: size in hexadecimal, extensions, line end, data, line end. The last one has size 0, trailer fields, and an empty line.
    fn chunk(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let Some(end) = input.bytes.windows(2).position(|two| two == b"\r\n") else {
            return if input.bytes.len() > 1024 { self.no_chunk(input, from) } else { Step::NeedMore { at_least: input.wire_bytes + 1 } };
        };
        let digits = input.bytes.get(..end).and_then(|line| line.split(|&byte| byte == b';').next()).unwrap_or(&[]);
        let Some(size) = std::str::from_utf8(digits).ok().and_then(|digits| usize::from_str_radix(digits.trim(), 16).ok()) else {
            return self.no_chunk(input, from);
        };
        message.row.kind = "Chunk";
        if size == 0 {
            return self.last_chunk(input, end, from, message);
        }
        let len = size.saturating_add(end + 4);
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        message.row.header_bytes = count(len - size);
        message.row.payload_bytes = count(size);
        message.payload_range = (end + 2).min(input.bytes.len())..(end + 2 + size).min(input.bytes.len());
        Step::Message { len }
    }

    fn last_chunk(&mut self, input: Input<'_>, end: usize, from: Side, message: &mut Message) -> Step {
        let Some(empty) = input.bytes.get(end..).and_then(|rest| rest.windows(4).position(|four| four == b"\r\n\r\n")) else {
            return if input.bytes.len() > MOST_HEAD {
                self.no_chunk(input, from)
            } else {
                Step::NeedMore { at_least: input.wire_bytes + 1 }
            };
        };
        let len = end + empty + 4;
        message.row.variant = "last";
        message.row.header_bytes = count(len);
        self.leave(from);
        Step::Message { len }
    }

    fn no_chunk(&mut self, input: Input<'_>, from: Side) -> Step {
        self.leave(from);
        Step::Malformed { len: input.wire_bytes, why: Malformed { offset: 0, field: "chunk size", section: "RFC 9112 §7.1" } }
    }

    fn leave(&mut self, from: Side) {
        if let Some(within) = self.within.get_mut(from.index()) {
            *within = Within::Nothing;
        }
    }
}

/// A head of which not all was captured.
fn cut(input: Input<'_>, message: &mut Message) -> Step {
    message.row.kind = "Request or response";
    message.row.opaque_bytes = count(input.wire_bytes);
    Step::Message { len: input.wire_bytes }
}

/// A start line is telling; of an unfinished one a port has to speak for it.
fn probe(bytes: &[u8]) -> Likely {
    let line = bytes.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or(&[]);
    let is_request = line.windows(8).any(|eight| eight.starts_with(b" HTTP/1."));
    match could_begin(bytes) {
        true if is_request || line.starts_with(b"HTTP/1.1 ") || line.starts_with(b"HTTP/1.0 ") => Likely::Yes,
        true if line.len() == bytes.len() => Likely::Maybe,
        _ => Likely::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(http: &mut Http1, bytes: &[u8], from: Side) -> (Step, Message) {
        let mut message = Message { wants_text: true, ..Message::default() };
        let step = http.next(Input::whole(bytes), from, &mut message);
        (step, message)
    }

    #[test]
    fn a_request_and_a_chunked_response_are_read() {
        let mut http = Http1::default();
        let request = b"POST /a/b?c=d HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
        let (step, message) = decode(&mut http, request, Side::Client);

        assert_eq!(Step::Message { len: request.len() }, step);
        assert_eq!(
            ("Request", "POST", 3, Some("/a/b"), Some("c=d")),
            (message.kind, message.variant, message.payload_bytes, message.uri_path.get(), message.uri_query.get())
        );

        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(Step::Message { len: head.len() }, decode(&mut http, head, Side::Server).0);
        // RFC 9112 §7.1: a chunk of five bytes, the last chunk
        let (step, chunk) = decode(&mut http, b"5\r\nhello\r\n", Side::Server);
        assert_eq!((Step::Message { len: 10 }, "Chunk", 5, 5), (step, chunk.kind, chunk.payload_bytes, chunk.header_bytes));
        assert_eq!(Step::Message { len: 5 }, decode(&mut http, b"0\r\n\r\n", Side::Server).0);
        assert_eq!(Step::NeedMore { at_least: 10 }, decode(&mut http, b"HTTP/1.1 ", Side::Server).0);
    }

    #[test]
    fn the_response_to_head_has_no_content() {
        let mut http = Http1::default();
        decode(&mut http, b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", Side::Client);
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";

        assert_eq!(Step::Message { len: response.len() }, decode(&mut http, response, Side::Server).0);
    }
}
