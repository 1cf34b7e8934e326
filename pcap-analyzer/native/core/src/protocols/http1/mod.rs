//! HTTP/1.0 and 1.1 (RFC 9112).
//!
//! One message is one request or response; of a chunked body each chunk is a message of its own, of a body that ends with the connection each run of
//! bytes. Byte columns: start line, fields and chunk framing are header, content is payload. Content that is encoded (compressed) counts as on the wire.

mod flight;
mod pairing;

pub(super) use pairing::Turns;

use super::websocket::WebSocket;
use super::{Carrier, Decoder, Input, Likely, Malformed, Port, Protocol, Step};
use crate::bytes::count;
use crate::message::{Message, Side};
use flight::Flight;

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
/// Status codes (RFC 9110 §15), one behind the other: those that are not registered are of a class all the same.
const STATUSES: &str = concat!(
    "100101102103104105106107108109110111112113114115116117118119120121122123124125126127128129130131132133134135136137138139140141",
    "142143144145146147148149150151152153154155156157158159160161162163164165166167168169170171172173174175176177178179180181182183",
    "184185186187188189190191192193194195196197198199200201202203204205206207208209210211212213214215216217218219220221222223224225",
    "226227228229230231232233234235236237238239240241242243244245246247248249250251252253254255256257258259260261262263264265266267",
    "268269270271272273274275276277278279280281282283284285286287288289290291292293294295296297298299300301302303304305306307308309",
    "310311312313314315316317318319320321322323324325326327328329330331332333334335336337338339340341342343344345346347348349350351",
    "352353354355356357358359360361362363364365366367368369370371372373374375376377378379380381382383384385386387388389390391392393",
    "394395396397398399400401402403404405406407408409410411412413414415416417418419420421422423424425426427428429430431432433434435",
    "436437438439440441442443444445446447448449450451452453454455456457458459460461462463464465466467468469470471472473474475476477",
    "478479480481482483484485486487488489490491492493494495496497498499500501502503504505506507508509510511512513514515516517518519",
    "520521522523524525526527528529530531532533534535536537538539540541542543544545546547548549550551552553554555556557558559560561",
    "562563564565566567568569570571572573574575576577578579580581582583584585586587588589590591592593594595596597598599",
);
/// The first of them.
const FIRST_STATUS: usize = 100;
/// Protocols that a connection goes on in behind 101 (RFC 9110 §7.8; "h2c" was RFC 7540's §3.2): name, and the row that decodes it.
const UPGRADES: [(&str, &str); 2] = [("websocket", "websocket"), ("h2c", "http2")];
/// Longest head that is waited for.
const MOST_HEAD: usize = 1 << 16;
/// Longest method that is not registered.
const MOST_METHOD: usize = 24;

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

/// Reads a head (RFC 9112 §2.1). Empty lines may stand before it (§2.2).
pub(super) fn head(bytes: &[u8]) -> Result<Head, NoHead> {
    let empty = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let bytes = bytes.get(empty..MOST_HEAD.min(bytes.len()).max(empty)).unwrap_or(&[]);
    if !could_begin(bytes) && !is_request_line(bytes) {
        return Err(NoHead::Broken(0, "start line is neither a request's nor a response's"));
    }
    let Some((end, after)) = end_of_head(bytes) else {
        return Err(if empty + bytes.len() >= MOST_HEAD { NoHead::Broken(MOST_HEAD, "head does not end") } else { NoHead::Unfinished });
    };
    let text = String::from_utf8_lossy(bytes.get(..end).unwrap_or(&[]));
    let mut lines = text.lines();
    let line = lines.next().unwrap_or("");
    let mut head = start_line(line).ok_or(NoHead::Broken(0, "start line"))?;
    head.bytes = empty + after;
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

/// RFC 9112 §3, §4. A method need not be registered (RFC 9110 §9.1).
fn start_line(line: &str) -> Option<Head> {
    let (first, rest) = line.split_once(' ')?;
    let is_request = !first.starts_with("HTTP/");
    let word = if is_request { method(first).unwrap_or("") } else { status(rest.get(..3)?)? };
    let target = if is_request { rest.rsplit_once(' ').map_or(rest, |(target, _)| target) } else { "" };
    let mut head = Head {
        bytes: 0,
        word,
        is_request,
        body: Body::Close,
        upgrade: None,
        subprotocol: None,
        extensions: None,
        target: target.to_owned(),
    };
    if is_request || head.is_without_content() {
        head.body = Body::Length(0);
    }
    Some(head)
}

impl Head {
    /// Whether it is a response that ends with its head, whatever the fields say (RFC 9112 §6.3).
    fn is_without_content(&self) -> bool {
        !self.is_request && (self.word.starts_with('1') || matches!(self.word, "204" | "304"))
    }
}

/// RFC 9112 §6, RFC 9110 §7.8, RFC 6455 §4
fn field(head: &mut Head, name: &str, value: &str) {
    match name {
        "content-length" if head.body != Body::Chunked && !head.is_without_content() => {
            // a list of the same value stands for the value (RFC 9110 §8.6)
            if let Some(Ok(length)) = value.split(',').next().map(|first| first.trim().parse()) {
                head.body = Body::Length(length);
            }
        }
        "transfer-encoding" if value.to_ascii_lowercase().ends_with("chunked") && !head.is_without_content() => head.body = Body::Chunked,
        "upgrade" => head.upgrade = Some(value.to_ascii_lowercase()),
        "sec-websocket-extensions" => head.extensions = Some(value.to_ascii_lowercase()),
        "sec-websocket-protocol" => head.subprotocol = Some(value.to_ascii_lowercase()),
        _ => {}
    }
}

/// Whether these bytes, as far as they go, begin as a request with a registered method or a response does.
fn could_begin(bytes: &[u8]) -> bool {
    // most bytes of what is no HTTP end here
    if bytes.first().is_some_and(|first| !first.is_ascii_uppercase()) {
        return false;
    }
    let agrees = |word: &[u8]| bytes.iter().zip(word).all(|(byte, expected)| byte == expected);
    agrees(b"HTTP/1.") || METHODS.iter().any(|method| agrees(method.as_bytes()) && matches!(bytes.get(method.len()), None | Some(b' ')))
}

/// Whether these bytes, as far as they go, are a request with a method that is not registered (RFC 9112 §3).
fn is_request_line(bytes: &[u8]) -> bool {
    let method = bytes.iter().take_while(|byte| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_')).count();
    let Some(rest) = bytes.get(method..).filter(|rest| !rest.is_empty()) else { return method <= MOST_METHOD };
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or(&[]);
    let is_ended = line.len() < rest.len();
    (1..=MOST_METHOD).contains(&method) && line.starts_with(b" ") && (!is_ended || line.windows(8).any(|eight| eight == b" HTTP/1."))
}

/// Fills in what a head shows.
pub(super) fn show(head: &Head, message: &mut Message) {
    message.row.kind = if head.is_request { "Request" } else { "Response" };
    message.row.variant = head.word;
    message.row.header_bytes = count(head.bytes);
    let is_of_websocket = head.upgrade.as_deref() == Some("websocket");
    message.facts.version = Some(if is_of_websocket { "WebSocket" } else { "HTTP/1.1" });
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
    METHODS.iter().copied().find(|known| *known == word)
}

/// The status code (RFC 9110 §15).
pub(super) fn status(word: &str) -> Option<&'static str> {
    let code = word.parse::<usize>().ok().filter(|_| word.len() == 3)?;
    let at = 3 * code.checked_sub(FIRST_STATUS)?;
    STATUSES.get(at..at + 3)
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

/// A connection of HTTP/1.
#[derive(Default)]
pub(super) struct Http1 {
    within: [Within; 2],
    flight: Flight,
    /// What goes on behind the answer 101.
    agreed: Option<Box<WebSocket>>,
    /// Whether frames may come although no answer 101 did.
    expects_frames: bool,
    /// Where frames did.
    frames: Option<Box<WebSocket>>,
}

impl Decoder for Http1 {
    fn next(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        if let Some(frames) = &mut self.frames {
            return frames.next(input, from, message);
        }
        let step = match self.within.get(from.index()).copied().unwrap_or_default() {
            Within::Nothing => self.begin(input, from, message),
            Within::Chunks => self.chunk(input, from, message),
            Within::Rest => {
                message.row.kind = "Content";
                message.row.payload_bytes = count(input.wire_bytes);
                message.payload_range = 0..input.bytes.len();
                Step::Message { len: input.wire_bytes }
            }
        };
        if self.frames.is_none() {
            message.other_protocol = Some("http");
        }
        step
    }

    fn gap(&mut self, from: Side) {
        self.flight.gap(from);
        // the next boundary is a head; content that ends with the connection has none
        if let Some(within) = self.within.get_mut(from.index()).filter(|within| **within == Within::Chunks) {
            *within = Within::Nothing;
        }
    }

    fn successor(&mut self) -> Option<Box<dyn Decoder>> {
        self.agreed.take().map(|agreed| agreed as Box<dyn Decoder>)
    }

    fn is_boundary(&self, bytes: &[u8], from: Side) -> Option<bool> {
        Some(self.frames.is_none() && self.is_start(bytes, from))
    }
}

impl Http1 {
    fn is_start(&self, bytes: &[u8], from: Side) -> bool {
        self.within.get(from.index()) == Some(&Within::Rest) || probe(bytes) == Likely::Yes
    }

    /// The handshake of WebSocket, which the capture may not show.
    pub(super) fn before_frames() -> Self {
        Self { expects_frames: true, ..Self::default() }
    }

    fn begin(&mut self, input: Input<'_>, from: Side, message: &mut Message) -> Step {
        let head = match head(input.bytes) {
            Ok(head) => head,
            Err(NoHead::Unfinished) if input.bytes.len() < input.wire_bytes => return cut(input, message),
            Err(NoHead::Unfinished) => return Step::NeedMore { at_least: input.wire_bytes + 1 },
            Err(NoHead::Broken(0, _)) if self.expects_frames => {
                return self.frames.insert(Box::default()).next(input, from, message);
            }
            Err(NoHead::Broken(offset, field)) => {
                return Step::Malformed { len: input.wire_bytes, why: Malformed { offset, field, section: "RFC 9112 §2.1" } };
            }
        };
        let asked = if head.is_request { self.flight.request(head.word) } else { self.flight.answered() };
        let is_end = is_end(&head, asked.method);
        let body = body(&head, asked.method);
        let length = match body {
            Body::Length(length) => usize::try_from(length).unwrap_or(usize::MAX),
            Body::Chunked | Body::Close => 0,
        };
        let len = head.bytes.saturating_add(length);
        if input.wire_bytes < len {
            return Step::NeedMore { at_least: len };
        }
        self.flight.is_done(&head);
        message.body_tag = asked.number;
        self.go_on(&head, body, is_end, from, message);
        show(&head, message);
        message.row.payload_bytes = count(length);
        message.payload_range = head.bytes..len.min(input.bytes.len());
        Step::Message { len }
    }

    /// What the direction, or the connection, goes on with behind a head and its content.
    fn go_on(&mut self, head: &Head, body: Body, is_end: bool, from: Side, message: &mut Message) {
        let is_upgrade = head.upgrade.as_deref() == Some("websocket");
        if head.is_request {
            self.expects_frames = is_upgrade;
        }
        if is_end {
            self.within = [Within::Rest; 2];
            message.carries_on = UPGRADES.iter().find(|(word, _)| head.upgrade.as_deref() == Some(word)).map(|(_, row)| *row);
            self.agreed = is_upgrade.then(|| Box::new(WebSocket::agreed(head)));
        } else if let Some(within) = self.within.get_mut(from.index()) {
            *within = match body {
                Body::Length(_) => Within::Nothing,
                Body::Chunked => Within::Chunks,
                Body::Close => Within::Rest,
            };
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

/// How the content ends, where the request counts too (RFC 9112 §6.3).
fn body(head: &Head, method: &str) -> Body {
    match method {
        "HEAD" if !head.is_request => Body::Length(0),
        _ if is_end(head, method) => Body::Close,
        _ => head.body,
    }
}

/// Whether the response makes the connection another protocol's: a tunnel (RFC 9110 §9.3.6), an upgrade (§7.8).
fn is_end(head: &Head, method: &str) -> bool {
    !head.is_request && (head.word == "101" || (head.word.starts_with('2') && method == "CONNECT"))
}

/// A head of which not all was captured.
fn cut(input: Input<'_>, message: &mut Message) -> Step {
    message.row.kind = "Request or response";
    message.row.opaque_bytes = count(input.wire_bytes);
    Step::Message { len: input.wire_bytes }
}

/// A start line is telling; of an unfinished one a port has to speak for it.
fn probe(bytes: &[u8]) -> Likely {
    if !could_begin(bytes) {
        return Likely::No;
    }
    let line = bytes.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or(&[]);
    let is_request = line.windows(8).any(|eight| eight == b" HTTP/1.");
    if is_request || line.starts_with(b"HTTP/1.1 ") || line.starts_with(b"HTTP/1.0 ") {
        Likely::Yes
    } else if line.len() == bytes.len() {
        Likely::Maybe
    } else {
        Likely::No
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
