//! The lower rooms over the public captures of `../shared/captures`, beside the checkout. Where that folder is not there, the tests say so and pass.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that fails should stop")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pcapstat_core::capture::{self, FileInfo, Input, Source};
use pcapstat_core::envelope::{Opened, Opener};
use pcapstat_core::error::Error;
use pcapstat_core::note::Notes;
use pcapstat_core::packet::Packet;

/// The folder of captures, where it is there.
fn captures() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/captures");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("not run: {} is not there", folder.display());
    None
}

/// One row of the manifest by column name.
type Row = BTreeMap<String, String>;

fn manifest(folder: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(folder.join("MANIFEST.csv")).unwrap();
    let mut lines = text.lines().map(split);
    let names = lines.next().unwrap();
    lines.map(|cells| names.iter().cloned().zip(cells).collect()).collect()
}

/// The cells of a line of CSV (RFC 4180), none of which holds a line break.
fn split(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            _ => cells.last_mut().unwrap().push(character),
        }
    }
    cells
}

/// What a capture holds, and whether its bytes add up.
#[derive(Default)]
struct Opening {
    files: Vec<FileInfo>,
    frames: u64,
    packets: Vec<(Packet, Vec<u8>)>,
    others: BTreeMap<&'static str, u64>,
    notes: Notes,
}

fn run(inputs: Vec<Input>) -> Result<Opening, Error> {
    let mut source = capture::open(inputs)?;
    Ok(open_all(source.as_mut()))
}

fn open_all(source: &mut dyn Source) -> Opening {
    let mut opening = Opening::default();
    let (mut opener, mut packet) = (Opener::default(), Packet::default());
    let mut frame_bytes: BTreeMap<(u16, u64), u32> = BTreeMap::new();
    let (mut all_bytes, mut found_bytes, mut found_frames) = (0u64, 0u64, 0u64);
    while let Some(frame) = source.next_frame().unwrap() {
        assert!(frame.captured.len() <= frame.frame_bytes as usize);
        opening.frames += 1;
        all_bytes += u64::from(frame.frame_bytes);
        frame_bytes.insert((frame.file, frame.number), frame.frame_bytes);
        match opener.open(&frame, &mut opening.notes, &mut packet) {
            Opened::Packet(payload) => {
                let numbers = packet.earlier_frames.iter().flatten().chain([&packet.frame]);
                let of_frames: u64 = numbers.clone().map(|number| u64::from(frame_bytes[&(packet.file, *number)])).sum();
                let h = packet.headers;
                let parts = [h.link_bytes, h.padding_bytes, h.ip_bytes, h.transport_bytes, packet.payload_bytes];
                assert_eq!(of_frames, parts.into_iter().map(u64::from).sum::<u64>(), "frame {}", packet.frame);
                assert!(payload.len() <= packet.payload_bytes as usize);
                found_bytes += of_frames;
                found_frames += numbers.count() as u64;
                opening.packets.push((packet.clone(), payload.to_vec()));
            }
            Opened::Held => {}
            Opened::Other(other) => {
                found_bytes += other.frame_bytes;
                found_frames += u64::from(other.frames);
                *opening.others.entry(other.protocol).or_default() += u64::from(other.frames);
            }
        }
    }
    for unfinished in opener.unfinished(&mut opening.notes) {
        found_bytes += unfinished.frame_bytes;
        found_frames += unfinished.frames;
        *opening.others.entry("unfinished").or_default() += unfinished.frames;
    }
    assert_eq!((all_bytes, opening.frames), (found_bytes, found_frames));
    opening.files = source.files();
    opening
}

/// Not read on purpose: another format, and a file of no bytes (an error here, 0 frames for Wireshark).
const REFUSED: &[&str] = &["pcapplusplus/examples__solaris.snoop", "ttproto/others__empty_pcap.pcap"];

#[test]
fn every_capture_has_as_many_frames_as_its_manifest_says() {
    let Some(folder) = captures() else { return };
    let mut wrong = Vec::new();
    for row in manifest(&folder) {
        let found = run(vec![Input::Path(folder.join(&row["path"]))]).map(|opening| opening.frames);
        let expected = row["packets"].parse::<u64>().ok().filter(|_| !REFUSED.contains(&row["path"].as_str()));
        // Where capinfos gives up, it gives no number.
        if found.as_ref().ok().copied() != expected && !row["tags"].contains("capinfos-error") {
            wrong.push(format!("{}: {expected:?} but {found:?}, {}", row["path"], row["tags"]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
