//! What is durable of a file that programs write through memory.
//!
//! Stores into a mapped file are not seen. But the pages of such a file in memory are the file itself. So this module holds what was
//! last synced of it, page by page, and compares: at a sync, what differs becomes durable; at a loss of power, each page that
//! differs may come back as it was. Files can be large and almost empty, so only pages that exist are read and kept.
//!
//! After a sync that failed, Linux counts the pages as written. So a later sync passes over each page that is as it was then.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::chance::Chance;
use crate::start::PAGE;

const AT_ONCE: u64 = 256; // pages that are read together

/// What is durable of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    size: u64,
    /// The pages that are not zero, by their number.
    pages: BTreeMap<u64, Vec<u8>>,
    /// The content of each page that counts as written, because its sync failed; of one that is zero, nothing.
    failed: BTreeMap<u64, Vec<u8>>,
}

/// What a file has at a time that its image lacks.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    size: u64,
    /// The content of each page that differs; of one that is zero, nothing.
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Changes {
    /// Returns the numbers of the pages.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.keys().copied()
    }
}

/// Calls a function with each page of a file in a range that is not in a hole. The last page of a file is filled up with zeros.
fn each_page(file: &File, range: Range<u64>, mut visit: impl FnMut(u64, &[u8])) -> io::Result<()> {
    if range.is_empty() {
        return Ok(());
    }
    // SAFETY: it changes only the place of a descriptor of the controller, which nothing else uses.
    let seek = |place: u64, how| match unsafe { libc::lseek(file.as_raw_fd(), place as i64, how) } {
        -1 => Err(io::Error::last_os_error()),
        place => Ok(place as u64),
    };
    let size = file.metadata()?.len();
    let end = size.min(range.end.saturating_mul(PAGE));
    let mut place = range.start * PAGE;
    let mut bytes = vec![0; (AT_ONCE * PAGE) as usize];
    while place < end {
        let begin = match seek(place, libc::SEEK_DATA) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break, // only a hole follows
            begin => begin?,
        };
        let hole = seek(begin, libc::SEEK_HOLE)?.min(end);
        place = begin / PAGE * PAGE;
        while place < hole {
            let count = (hole - place).min(AT_ONCE * PAGE) as usize;
            let whole = count.next_multiple_of(PAGE as usize);
            bytes[count..whole].fill(0);
            file.read_exact_at(&mut bytes[..count], place)?;
            for page in bytes[..whole].chunks(PAGE as usize) {
                visit(place / PAGE, page);
                place += PAGE;
            }
        }
    }
    Ok(())
}

fn is_zero(page: &[u8]) -> bool {
    page.iter().all(|byte| *byte == 0)
}

impl Image {
    /// Returns the image of a file of which all is durable.
    pub fn of(file: &File) -> io::Result<Self> {
        let mut pages = BTreeMap::new();
        each_page(file, 0..u64::MAX, |number, page| {
            if !is_zero(page) {
                pages.insert(number, page.to_vec());
            }
        })?;
        Ok(Self { size: file.metadata()?.len(), pages, failed: BTreeMap::new() })
    }

    /// A change is not durable: puts back what it overwrote from an offset on, and the size.
    pub fn undo(&mut self, offset: u64, old: &[u8], old_size: u64) {
        self.resize(old_size);
        let mut place = offset;
        let mut rest = old;
        while !rest.is_empty() {
            let inside = (place % PAGE) as usize;
            let (now, later) = rest.split_at(rest.len().min(PAGE as usize - inside));
            let page = self.pages.entry(place / PAGE).or_insert_with(|| vec![0; PAGE as usize]);
            page[inside..inside + now.len()].copy_from_slice(now);
            place += now.len() as u64;
            rest = later;
        }
        self.pages.retain(|_, page| !is_zero(page));
    }

    fn resize(&mut self, size: u64) {
        self.size = size;
        self.pages.split_off(&size.div_ceil(PAGE));
        self.failed.split_off(&size.div_ceil(PAGE));
        if let Some(page) = self.pages.get_mut(&(size / PAGE)) {
            page[(size % PAGE) as usize..].fill(0);
        }
    }

    /// Returns what a sync of a range of pages makes durable, if it works.
    pub fn changes(&self, file: &File, range: Range<u64>) -> io::Result<Changes> {
        let mut changes = self.differences(file, range)?;
        changes.pages.retain(|number, page| self.failed.get(number) != Some(page));
        Ok(changes)
    }

    /// Returns what a file has now that is not durable, in a range of pages.
    fn differences(&self, file: &File, range: Range<u64>) -> io::Result<Changes> {
        let mut pages = BTreeMap::new();
        let mut durable = self.pages.range(range.clone()).peekable();
        let gone = |number: &u64, pages: &mut BTreeMap<u64, Vec<u8>>| drop(pages.insert(*number, Vec::new()));
        each_page(file, range, |number, page| {
            while let Some((gap, _)) = durable.next_if(|(gap, _)| **gap < number) {
                gone(gap, &mut pages);
            }
            match durable.next_if(|(kept, _)| **kept == number) {
                Some((_, kept)) if kept == page => {}
                None if is_zero(page) => {}
                _ => drop(pages.insert(number, if is_zero(page) { Vec::new() } else { page.to_vec() })),
            }
        })?;
        for (number, _) in durable {
            gone(number, &mut pages);
        }
        Ok(Changes { size: file.metadata()?.len(), pages })
    }

    /// Changes are durable from now on.
    pub fn take(&mut self, changes: Changes) {
        for (number, page) in changes.pages {
            self.failed.remove(&number);
            if page.is_empty() {
                self.pages.remove(&number);
            } else {
                self.pages.insert(number, page);
            }
        }
        self.resize(changes.size);
    }

    /// A sync of changes has failed.
    pub fn fail(&mut self, changes: Changes) {
        self.failed.extend(changes.pages);
    }

    /// A program writes a range of bytes, or cuts it off: these pages count as changed again.
    pub fn touch(&mut self, range: &Range<u64>) {
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        self.failed.retain(|number, _| !pages.contains(number));
    }

    /// Puts a file back to what it was.
    pub fn put_back(&self, file: &File) -> io::Result<()> {
        self.restore(file, 0.0, &mut Chance::new(0, "nothing survives")).map(drop)
    }

    /// Puts a file back to what is durable, but for pages that survive, each with a probability.
    ///
    /// Returns how many bytes of the file change, and whether anything does.
    pub fn restore(&self, file: &File, share: f64, chance: &mut Chance) -> io::Result<(u64, bool)> {
        let changes = self.differences(file, 0..u64::MAX)?;
        let mut has_size = changes.size == self.size || chance.happens(share);
        let mut lost = Vec::new();
        for (number, page) in &changes.pages {
            let is_written = self.failed.get(number) != Some(page);
            let survives = is_written && chance.happens(share) && (has_size || number * PAGE < changes.size);
            has_size |= survives && number * PAGE >= self.size;
            if !survives {
                lost.push((*number, page));
            }
        }
        let size = if has_size { changes.size } else { self.size };
        file.set_len(size)?;
        let is_changed = size != changes.size || !lost.is_empty();
        let mut bytes = 0;
        for (number, page) in lost {
            let durable = self.pages.get(&number).map_or(&[][..], Vec::as_slice);
            let byte = |of: &[u8], place: usize| of.get(place).copied().unwrap_or(0);
            bytes += (0..PAGE as usize).filter(|place| byte(durable, *place) != byte(page, *place)).count() as u64;
            let place = number * PAGE;
            let count = size.saturating_sub(place).min(PAGE);
            if count == 0 {
                continue; // the file ends before it
            }
            if durable.is_empty() {
                punch(file, place)?;
            } else {
                file.write_all_at(&durable[..count as usize], place)?;
            }
        }
        Ok((bytes, is_changed))
    }
}

/// Makes a page of a file a hole again.
pub fn punch(file: &File, place: u64) -> io::Result<()> {
    let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the descriptor is open.
    if unsafe { libc::fallocate(file.as_raw_fd(), how, place as i64, PAGE as i64) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::{self, File, OpenOptions};
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::{Image, PAGE};
    use crate::chance::Chance;

    fn file(name: &str) -> File {
        let path = std::env::temp_dir().join(format!("labrys-pages-{name}-{}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
        fs::remove_file(path).expect("its name removed");
        file
    }

    fn byte(file: &File, page: u64) -> u8 {
        let mut byte = [0];
        file.read_exact_at(&mut byte, page * PAGE).expect("a byte");
        byte[0]
    }

    #[test]
    fn what_was_not_synced_comes_back() {
        let file = file("back");
        file.set_len(8 * PAGE).expect("a size");
        file.write_all_at(b"a", PAGE).expect("written");
        let mut image = Image::of(&file).expect("an image");
        file.write_all_at(b"b", 2 * PAGE).expect("written");
        let changes = image.changes(&file, 0..u64::MAX).expect("changes");
        assert_eq!(changes.pages.keys().copied().collect::<Vec<_>>(), [2]);
        image.take(changes);
        file.write_all_at(b"c", PAGE).expect("written");
        file.write_all_at(b"c", 5 * PAGE).expect("written");
        let bytes = image.restore(&file, 0.0, &mut Chance::new(1, "loss")).expect("restored");
        assert_eq!(bytes, (2, true));
        assert_eq!([1, 2, 5].map(|page| byte(&file, page)), [b'a', b'b', 0]);
    }

    #[test]
    fn a_sync_of_a_part_leaves_the_rest() {
        let file = file("part");
        file.set_len(4 * PAGE).expect("a size");
        let mut image = Image::of(&file).expect("an image");
        file.write_all_at(b"a", 0).expect("written");
        file.write_all_at(b"a", 2 * PAGE).expect("written");
        image.take(image.changes(&file, 2..3).expect("changes"));
        image.restore(&file, 0.0, &mut Chance::new(1, "loss")).expect("restored");
        assert_eq!([0, 2].map(|page| byte(&file, page)), [0, b'a']);
    }

    #[test]
    fn a_sync_passes_over_pages_whose_sync_failed() {
        let file = file("failed");
        file.set_len(4 * PAGE).expect("a size");
        let mut image = Image::of(&file).expect("an image");
        let numbers = |image: &Image| {
            let changes = image.changes(&file, 0..u64::MAX).expect("changes");
            changes.pages.keys().copied().collect::<Vec<_>>()
        };
        (0..4).for_each(|page| file.write_all_at(b"a", page * PAGE).expect("written"));
        image.fail(image.changes(&file, 0..3).expect("changes"));
        assert_eq!(numbers(&image), [3]);
        file.write_all_at(b"b", PAGE).expect("written");
        image.touch(&(2 * PAGE + 5..2 * PAGE + 6));
        assert_eq!(numbers(&image), [1, 2, 3]);
        image.take(image.changes(&file, 0..u64::MAX).expect("changes"));
        image.restore(&file, 1.0, &mut Chance::new(1, "loss")).expect("restored");
        assert_eq!([0, 1, 2, 3].map(|page| byte(&file, page)), [0, b'b', b'a', b'a']);
    }

    #[test]
    fn each_page_survives_for_itself() {
        let file = file("share");
        file.set_len(3 * PAGE).expect("a size");
        let image = Image::of(&file).expect("an image");
        let mut seen = BTreeSet::new();
        for seed in 0..200 {
            (0..3).for_each(|page| file.write_all_at(b"x", page * PAGE).expect("written"));
            image.restore(&file, 0.5, &mut Chance::new(seed, "loss")).expect("restored");
            seen.insert([0, 1, 2].map(|page| byte(&file, page)));
            image.restore(&file, 0.0, &mut Chance::new(seed, "loss")).expect("restored");
        }
        assert_eq!(seen.len(), 8);
    }

    #[test]
    fn a_large_empty_file_costs_nothing() {
        let file = file("large");
        file.set_len(1 << 40).expect("a size");
        file.write_all_at(b"x", 1 << 39).expect("written");
        let image = Image::of(&file).expect("an image");
        assert_eq!(image.pages.len(), 1);
        file.write_all_at(b"y", 1 << 38).expect("written");
        image.restore(&file, 0.0, &mut Chance::new(1, "loss")).expect("restored");
        assert!(file.metadata().expect("its metadata").blocks() * 512 <= 2 * PAGE);
    }

    #[test]
    fn a_size_that_was_not_synced_is_lost() {
        let file = file("size");
        file.write_all_at(b"abc", 0).expect("written");
        let image = Image::of(&file).expect("an image");
        file.set_len(4 * PAGE).expect("a size");
        file.write_all_at(b"x", 2 * PAGE).expect("written");
        image.restore(&file, 0.0, &mut Chance::new(1, "loss")).expect("restored");
        assert_eq!(file.metadata().expect("its metadata").len(), 3);
        file.set_len(1).expect("a size");
        image.restore(&file, 0.0, &mut Chance::new(1, "loss")).expect("restored");
        let mut bytes = [0; 3];
        file.read_exact_at(&mut bytes, 0).expect("read");
        assert_eq!(&bytes, b"abc");
    }

    #[test]
    fn writes_before_the_mapping_are_undone_in_the_image() {
        let file = file("undo");
        file.write_all_at(b"old", 0).expect("written");
        let durable = Image::of(&file).expect("an image");
        file.write_all_at(b"NEW and longer", 0).expect("written");
        file.set_len(1 << 20).expect("a size");
        let mut image = Image::of(&file).expect("an image");
        image.undo(14, &[], 14);
        image.undo(0, b"old", 3);
        assert_eq!(image, durable);
    }

    /// Random stores, syncs and losses against a model that holds each page whole.
    #[test]
    fn the_law_holds_for_random_histories() {
        const PAGES: u64 = 6;
        for seed in 0..200 {
            let mut draws = Chance::new(seed, "history");
            let file = file(&format!("model-{seed}"));
            file.set_len(PAGES * PAGE).expect("a size");
            let mut image = Image::of(&file).expect("an image");
            let (mut now, mut durable) = ([0; PAGES as usize], [0; PAGES as usize]);
            for step in 1..40 {
                let page = draws.below(PAGES);
                match draws.below(8) {
                    0 => {
                        let to = page + 1 + draws.below(PAGES - page);
                        image.take(image.changes(&file, page..to).expect("changes"));
                        durable[page as usize..to as usize].copy_from_slice(&now[page as usize..to as usize]);
                    }
                    1 => {
                        let share = if draws.happens(0.5) { 0.0 } else { draws.share() };
                        image.restore(&file, share, &mut draws).expect("restored");
                        let after: Vec<u8> = (0..PAGES).map(|page| byte(&file, page)).collect();
                        for (place, value) in after.iter().enumerate() {
                            assert!(*value == durable[place] || share > 0.0 && *value == now[place]);
                        }
                        now.copy_from_slice(&after);
                        durable = now;
                        image = Image::of(&file).expect("an image");
                    }
                    _ => {
                        file.write_all_at(&[step], page * PAGE).expect("written");
                        now[page as usize] = step;
                    }
                }
            }
        }
    }
}
