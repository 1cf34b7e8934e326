//! tshark's PDML, read as a stream: what it opened with the keys it was given, frame by frame. No line of this names a protocol.
//!
//! tshark runs with a post-dissector of ours (`pcapstat/engines/contents.lua` of the package), which adds to each frame the lengths of its records of application
//! data and the decrypted contents; of all else PDML's `num` is read, the frame's number. Memory is bounded by a frame.

use quick_xml::events::{BytesStart, Event};
use quick_xml::Reader;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// Why our post-dissector may be missing.
const NO_LUA: &str = "it runs no Lua, as tshark 4.4 does for root (run it as another user, or write \
    run_user_scripts_when_superuser = true into the file init.lua of the global plugin folder that `tshark -G folders` names)";

/// What was opened in one frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The frame's number.
    pub frame: u64,
    /// Lengths of its records of application data, protected, without their headers; opened or not.
    pub records: Vec<u32>,
    /// Lengths and content types of records that look like application data and are not (RFC 8446 §5.2).
    pub hidden: Vec<(u32, u8)>,
    /// Decrypted contents, in order.
    pub sources: Vec<Source>,
    /// Plaintexts of messages that are protected by themselves (OSCORE), in order.
    pub inner: Vec<Vec<u8>>,
}

/// A decrypted content: of one record from its first message on, or whole where it has a part of a message; or a message that several records carry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// So many at the end wait for the records that complete their message.
    pub waiting: usize,
    /// The record's number in the frame, from 1, where it has a part of a message; else 0.
    pub record: usize,
}

/// Why tshark ended otherwise than well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its exit status, and what it complained of last.
    pub cause: String,
    /// Whether it had closed its document: it has told all that it could read of the capture.
    pub is_behind_all: bool,
}

/// tshark at work, and what it has told so far.
pub struct Pdml {
    reader: Reader<Box<dyn BufRead + Send>>,
    buffer: Vec<u8>,
    current: Contents,
    is_ended: bool,
    is_whole: bool,
    child: Option<Child>,
    complaints: Option<JoinHandle<String>>,
}

/// Most bytes kept of what tshark writes to standard error.
const COMPLAINTS: u64 = 1 << 16;

fn read_some(mut errors: impl Read) -> String {
    let mut text = Vec::new();
    let _ = errors.by_ref().take(COMPLAINTS).read_to_end(&mut text);
    let _ = std::io::copy(&mut errors, &mut std::io::sink());
    String::from_utf8_lossy(&text).into_owned()
}

/// Bytes read at once.
const BLOCK: usize = 1 << 18;

impl Pdml {
    /// Starts tshark: the program with its arguments, and before it what its environment holds besides ours ("NAME=value"), as in a shell.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub fn start(command: &[String]) -> std::io::Result<Self> {
        let variables: Vec<(&str, &str)> = command.iter().map_while(|word| word.split_once('=')).collect();
        let (program, arguments) =
            command.get(variables.len()..).and_then(<[String]>::split_first).ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .envs(variables)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        let mut pdml = Self::new(Box::new(output));
        pdml.complaints = child.stderr.take().map(|errors| std::thread::spawn(move || read_some(errors)));
        pdml.child = Some(child);
        Ok(pdml)
    }

    /// Reads PDML that is at hand.
    #[must_use]
    pub fn new(input: Box<dyn Read + Send>) -> Self {
        let input: Box<dyn BufRead + Send> = Box::new(BufReader::with_capacity(BLOCK, input));
        let mut reader = Reader::from_reader(input);
        reader.config_mut().check_end_names = false;
        Self { reader, buffer: Vec::new(), current: Contents::default(), is_ended: false, is_whole: false, child: None, complaints: None }
    }

    /// What was opened in a frame. Frames are asked for in the order of their numbers.
    pub fn at(&mut self, frame: u64) -> Option<&Contents> {
        while self.current.frame < frame && !self.is_ended {
            self.read_packet();
        }
        (self.current.frame == frame).then_some(&self.current)
    }

    /// Reads on to the end of a packet. XML that breaks off is the end: tshark was stopped, or stopped.
    fn read_packet(&mut self) {
        self.current.records.clear();
        self.current.hidden.clear();
        self.current.sources.clear();
        self.current.inner.clear();
        loop {
            self.buffer.clear();
            match self.reader.read_event_into(&mut self.buffer) {
                Ok(Event::Empty(field) | Event::Start(field)) if field.name().as_ref() == b"field" => self.current.take(&field),
                Ok(Event::End(end)) if end.name().as_ref() == b"packet" => return,
                Ok(Event::End(end)) if end.name().as_ref() == b"pdml" => self.is_whole = true,
                Ok(Event::Eof) | Err(_) => {
                    self.is_ended = true;
                    self.current.frame = u64::MAX;
                    return;
                }
                Ok(_) => {}
            }
        }
    }

    /// Lets tshark come to its end. What it complained of last, where it failed.
    #[must_use]
    pub fn failure(mut self) -> Option<Failure> {
        while !self.is_ended {
            self.read_packet();
        }
        let status = self.child.take()?.wait().ok()?;
        let complaints = self.complaints.take()?.join().unwrap_or_default();
        let last = complaints.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message");
        // tshark 4.4 says so of our post-dissector, and nothing of the reason
        let says = if complaints.contains("fields aren't valid") && last == "pcapstat" { NO_LUA } else { last };
        (!status.success()).then(|| Failure { cause: format!("tshark ended with {status}: {says}"), is_behind_all: self.is_whole })
    }
}

impl Drop for Pdml {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Contents {
    fn take(&mut self, field: &BytesStart<'_>) {
        let Some(name) = attribute(field, b"name") else { return };
        match &*name {
            b"num" => self.frame = number(field).unwrap_or(self.frame),
            b"pcapstat.record" => self.records.extend(number(field).and_then(|length| u32::try_from(length).ok())),
            b"pcapstat.hidden" => self.hidden.extend(pair(field)),
            b"pcapstat.content" => {
                let bytes = attribute(field, b"show").map_or_else(Vec::new, |text| hexadecimal(&text));
                self.sources.push(Source { bytes, waiting: 0, record: 0 });
            }
            b"pcapstat.inner" => self.inner.push(attribute(field, b"show").map_or_else(Vec::new, |text| hexadecimal(&text))),
            b"pcapstat.waiting" => {
                if let Some(source) = self.sources.last_mut() {
                    source.waiting = number(field).and_then(|waiting| usize::try_from(waiting).ok()).unwrap_or(0);
                }
            }
            b"pcapstat.of" => {
                if let Some(source) = self.sources.last_mut() {
                    source.record = number(field).and_then(|record| usize::try_from(record).ok()).unwrap_or(0);
                }
            }
            _ => {}
        }
    }
}

/// An attribute's value. None of those that are read holds a character that XML escapes.
fn attribute<'a>(field: &'a BytesStart<'_>, name: &[u8]) -> Option<std::borrow::Cow<'a, [u8]>> {
    field.attributes().with_checks(false).flatten().find(|attribute| attribute.key.as_ref() == name).map(|attribute| attribute.value)
}

fn number(field: &BytesStart<'_>) -> Option<u64> {
    let text = attribute(field, b"show")?;
    std::str::from_utf8(&text).ok()?.parse().ok()
}

fn pair(field: &BytesStart<'_>) -> Option<(u32, u8)> {
    let text = attribute(field, b"show")?;
    let (length, kind) = std::str::from_utf8(&text).ok()?.split_once(' ')?;
    length.parse().ok().zip(kind.parse().ok())
}

/// Bytes from digits in pairs, whatever stands between the pairs.
fn hexadecimal(text: &[u8]) -> Vec<u8> {
    let mut digits = text.iter().filter_map(|&digit| char::from(digit).to_digit(16));
    let mut bytes = Vec::with_capacity(text.len() / 3 + 1);
    while let (Some(high), Some(low)) = (digits.next(), digits.next()) {
        bytes.push(u8::try_from(high << 4 | low).unwrap_or(0));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_PACKETS: &str = r#"<?xml version="1.0"?><pdml><packet><proto name="geninfo"><field name="num" show="3" value="3"/></proto>
        <proto name="tcp"><field name="filtered" value="tcp"/></proto></packet>
        <packet><proto name="geninfo"><field name="num" show="7" size="2"/></proto><proto name="pcapstat">
        <field name="pcapstat.record" show="38" value="26"/><field name="pcapstat.hidden" show="250 22"/><field name="pcapstat.content" show="30:e1:22" value="30e122"/>
        <field name="pcapstat.waiting" show="2"/><field name="pcapstat.of" show="1"/><field name="pcapstat.inner" show="01:b3"/></proto></packet>"#;

    #[test]
    fn contents_are_found_by_frame_and_an_end_in_the_middle_is_the_end() {
        let mut pdml = Pdml::new(Box::new(TWO_PACKETS.as_bytes()));

        assert_eq!(None, pdml.at(1));
        assert_eq!(Some(&Contents { frame: 3, ..Contents::default() }), pdml.at(3));
        let sources = vec![Source { bytes: vec![0x30, 0xe1, 0x22], waiting: 2, record: 1 }];
        assert_eq!(
            Some(&Contents { frame: 7, records: vec![38], hidden: vec![(250, 22)], sources, inner: vec![vec![1, 0xb3]] }),
            pdml.at(7)
        );
        assert_eq!(None, pdml.at(8));
    }

    /// A shell instead of tshark, that writes PDML, complains and ends with 2, as tshark 4.0 does of a capture that is cut short.
    fn ended(written: &str) -> Option<Failure> {
        let script = format!("echo '{written}'; echo 'appears to have been cut short' >&2; exit 2");
        Pdml::start(&["sh".to_owned(), "-c".to_owned(), script]).ok()?.failure()
    }

    #[test]
    fn a_failure_behind_the_whole_document_is_known_from_one_before() {
        let cause = "tshark ended with exit status: 2: appears to have been cut short".to_owned();

        assert_eq!(Some(Failure { cause: cause.clone(), is_behind_all: true }), ended("<pdml><packet></packet></pdml>"));
        assert_eq!(Some(Failure { cause: cause.clone(), is_behind_all: false }), ended("<pdml><packet></packet>"));
        assert_eq!(Some(Failure { cause, is_behind_all: false }), ended(""));
    }
}
