//! Values that were written to a key twice, and writes of the initial value: a read of such a value does not tell its writer.
//!
//! What the other values show still holds, whichever write such a read is of. So each of these writes becomes a version of its own,
//! and a read that may be of several of them counts as one without a result. An execution that explains a history explains it
//! with fewer results too: what contradicts a model here contradicts it in the whole history. If no read was left out, nothing was
//! lost, and the verdict is that of the history.
//!
//! - A read after an own write of the key tells no writer in any model. `internal` compares what was said, `Table::said`.
//! - A model that prohibits G1a, G1b and G1c leaves out the writes that such a read must not be of. If one is left, the read is of it. If
//!   none is left, each of them is an anomaly. Options that order versions take reads as reasons for more than that, so they leave
//!   such a read out.
//! - A list that has the element shows nothing of its versions. So if a read returned it, its appends are left out. The same execution
//!   without them explains the reads of lists that lack it. In a transaction that has it, the reads of the key are left out.

use super::{History, Mop, Table, Workload, FAIL, NONE};

/// A write of a value that was written to its key before or is the initial one.
#[derive(Clone, Copy)]
struct Write {
    row: u32,
    /// The version of its own.
    version: u32,
    /// Whether its transaction writes the key again later.
    is_intermediate: bool,
}

/// The transactions of a history, with a version for each write.
pub struct Apart {
    pub table: Table,
    /// How many values, each of one key, were written twice, or are the initial one.
    pub values: usize,
    /// How many reads were left out although the model may ask something of them.
    pub reads: usize,
}

/// Tells apart the writes of each value.
///
/// `certain` says that a read of a write that failed, of one that its transaction replaced, and of a later own one is an anomaly for the
/// model, and that no option orders versions.
pub fn told_apart(history: &History<'_>, workload: Workload, certain: bool) -> Apart {
    let mut table = history.table.clone();
    table.said.clone_from(&table.mops);
    let mut count = vec![0u32; history.elems()];
    for row in 0..history.len() {
        for (mop, at) in history.of(row).iter().zip(history.first(row)..).filter(|(mop, _)| !mop.is_read) {
            count[mop.elem as usize] += 1;
            if history.table.is_initial(mop) {
                count[mop.elem as usize] += 1; // beside the initial version
                table.said[at].elem = NONE;
            }
        }
    }
    let doubled: Vec<bool> = count.into_iter().map(|count| count > 1).collect();
    let values = doubled.iter().filter(|&&doubled| doubled).count();
    let reads = match workload {
        Workload::Lists => lists(history, &doubled, &mut table),
        Workload::Registers => registers(history, &doubled, certain, &mut table),
    };
    Apart { table, values, reads }
}

/// Returns a read of a key without a result.
fn left_out(mop: &Mop) -> Mop {
    Mop { is_read: true, known: false, is_nil: true, shared: false, elem: NONE, from: 0, to: 0, ..*mop }
}

fn lists(history: &History<'_>, doubled: &[bool], table: &mut Table) -> usize {
    let mut is_shown = vec![false; doubled.len()];
    for mop in (0..history.len()).flat_map(|row| history.of(row)).filter(|mop| mop.is_read && mop.known) {
        history.list(mop).iter().for_each(|&elem| is_shown[elem as usize] = true);
    }
    let is_doubled = |elem: &u32| doubled[*elem as usize] && is_shown[*elem as usize];
    let mut has_version = vec![false; doubled.len()];
    let mut reads = 0;
    for row in 0..history.len() {
        let mops = history.of(row);
        let reads_one = |mop: &Mop| mop.known && history.list(mop).iter().any(is_doubled);
        let has = |mop: &&Mop| if mop.is_read { reads_one(mop) } else { is_doubled(&mop.elem) };
        let keys: Vec<u32> = mops.iter().filter(has).map(|mop| mop.key).collect();
        for (mop, at) in mops.iter().zip(history.first(row)..).filter(|(mop, _)| keys.contains(&mop.key)) {
            if mop.is_read || is_doubled(&mop.elem) {
                reads += usize::from(mop.is_read && mop.known);
                table.mops[at] = left_out(mop);
            }
        }
        for (mop, at) in mops.iter().zip(history.first(row)..).filter(|(mop, _)| !mop.is_read) {
            let elem = mop.elem as usize;
            if doubled[elem] && !is_shown[elem] && std::mem::replace(&mut has_version[elem], true) {
                table.mops[at].elem = table.elems.len() as u32;
                table.elems.push(table.elems[elem]);
            }
        }
    }
    reads
}

fn registers(history: &History<'_>, doubled: &[bool], certain: bool, table: &mut Table) -> usize {
    let mut writes: Vec<Vec<Write>> = vec![Vec::new(); doubled.len()];
    let mut of_initial = vec![NONE; history.keys()]; // by key: the element that has the initial value
    for row in 0..history.len() {
        let mops = history.of(row);
        for (place, mop) in mops.iter().enumerate().filter(|(_, mop)| !mop.is_read && doubled[mop.elem as usize]) {
            let some = &mut writes[mop.elem as usize];
            let version = if some.is_empty() { mop.elem } else { table.elems.len() as u32 };
            if !some.is_empty() {
                table.elems.push(table.elems[mop.elem as usize]);
            }
            table.mops[history.first(row) + place].elem = version;
            let is_intermediate = mops[place + 1..].iter().any(|other| !other.is_read && other.key == mop.key);
            some.push(Write { row: row as u32, version, is_intermediate });
            if history.table.is_initial(mop) {
                of_initial[mop.key as usize] = mop.elem;
            }
        }
    }
    let mut reads = 0;
    for row in 0..history.len() {
        let mops = history.of(row);
        for (place, mop) in mops.iter().enumerate().filter(|(_, mop)| mop.is_read && mop.known) {
            let is_initial = mop.elem == NONE;
            let elem = if is_initial { of_initial[mop.key as usize] } else { mop.elem };
            let Some(some) = writes.get(elem as usize).filter(|some| !some.is_empty()) else { continue };
            let now = &mut table.mops[history.first(row) + place];
            if mops[..place].iter().any(|other| !other.is_read && other.key == mop.key) {
                *now = left_out(mop);
                continue;
            }
            let may_be = |write: &&Write| {
                write.row != row as u32 && !write.is_intermediate && history.kind[write.row as usize] != FAIL
            };
            let mut options: Vec<u32> = if certain {
                some.iter().filter(may_be).map(|write| write.version).collect()
            } else {
                some.iter().map(|write| write.version).collect()
            };
            if is_initial {
                options.push(NONE);
            }
            match options[..] {
                [only] if certain => now.elem = only,
                [] => now.elem = some[0].version,
                _ => {
                    *now = left_out(mop);
                    reads += 1;
                }
            }
        }
    }
    reads
}
