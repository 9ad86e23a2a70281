//! The program outside that drives a simulation: Labrys. It stands still while the simulation runs, and the simulation while it runs.
//!
//! Both write lines. Words are separated by a space; bytes and texts are hexadecimal digits. A run begins with what it consists of:
//!
//! ```text
//! seed N | root FOLDER | node NAME ADDRESS | variable TEXT | show PATH | log PATH | preempt SHARE | stalls RATE | trace-all | all-stop | look MICROSECONDS | cpu N |
//! ready
//! ```
//!
//! With `all-stop`, programs answer no call themselves (`fast`); this has no effect on what they do.
//! `variable` and `show` are for all nodes after it, and the last node is that of the program outside. The controller answers
//! `ready`. Then the program outside asks for anything of the following, and waits until an event or a time:
//!
//! ```text
//! start ID NODE FOLDER OUTPUT ARGUMENT... | talk STREAM ID NODE FOLDER OUTPUT ARGUMENT... | kill ID | pause ID | resume ID | power ID
//! volume NODE FOLDER REMEMBERS | lose NODE FOLDER [all|none|NUMBER+... [torn]] | unsynced NODE | settle NODE FOLDER FILE | settle NODE FOLDER - | fill NODE 1 | fill NODE 0
//! takes NODE | sync NODE MEAN | fail KEY NODE FOLDER OPERATION PATTERN FIRST TIMES ERROR | failed KEY | slow KEY NODE MEAN | slowed KEY
//! link FROM TO LEAST MOST MEAN LATE | cut KEY FROM TO | disturb KEY FROM TO LOSE DUPLICATE DAMAGE DELAY JITTER HURRY RATE QUEUE | mend KEY
//! probe ID FROM TO BYTES | dropped KEY | offset NODE NANOSECONDS | ahead NODE | speed NODE MILLIONTHS | shows NODE | calls ID | bound NODE PORT
//! steps | want WAIT CALL PATTERN NTH NODE... | stall WAIT NODE AFTER any|wall CALL LENGTH | drop WAIT | noted | hear WAIT NTH -TEXT FROM TO... | ignore WAIT
//! seed N | originals | copy | back
//! connect ID ADDRESS PORT | send ID BYTES | finish ID | close ID | wait TIME | wait - | figures
//! ```
//!
//! Programs, connections, probes and the keys of rules have numbers that the program outside chooses. Times are in nanoseconds.
//! `talk` starts a program whose standard input and output are a connection of the program outside. After `finish`, a connection
//! sends no more, and goes on to receive.
//! `start`, `talk`, `kill` and `power` are answered with `done`, so that the program outside can look at the files of the node after them.
//! `volume` comes before the programs with data below a folder: it gets a volume, if it has none. With REMEMBERS, 1 and not 0, the
//! disk of the node remembers from then on what is durable. The answer is the path of the data, in digits, by which no program can
//! change what it leads to. `lose`, after the end of the programs with data there, lets the folder lose what is not durable, and is
//! answered with `FILES CHANGED BYTES`. It can say what is lost: all that is not durable, nothing, or changes by their numbers, of which
//! `unsynced` answers those that are not durable. With `settle`, a file below a folder, or all of the folder, is durable as it is. `fill` fills
//! all volumes of a node, or frees them. `takes` tries to write a small file on each, and is answered with 1 if that works.
//! With `fail`, from the FIRST call of an OPERATION (open, read, write, fsync or rename) on a file below a folder, whose name or path
//! there fits a pattern, TIMES such calls fail with an error, until `mend`. `failed` is answered with a line
//! `NODE TIME CALL NUMBER PROGRAM FILE` for each call that failed, and a dot.
//! With `slow`, syncs of a node that begin take MEAN, until `mend`; `slowed` is answered with a line `NODE COUNT LONGEST BEFORE` for each
//! node, of the syncs that have begun since and the longest one before, and a dot. With `speed`, the clocks of a node run at a speed of so many millionths;
//! `shows` is answered with its monotonic clock.
//! With `steps`, the disks number their changes and syncs. With `want`, a program stands still right after the NTH step of a CALL (or
//! any) on a file that fits a pattern, on one of some nodes; the event `stands` says it, and `resume` ends that. `noted` is answered
//! with a line for each step, and a dot: `NODE NUMBER TIME CALL -FILE OTHERS CHANGE...`; see `kernel::steps`.
//! With `stall`, unless the wait is dropped before, a thread stalls for LENGTH: AFTER so long, CALL more calls of its node go on, of any
//! kind or reads of the wall clock, and the next one stalls.
//! With `hear`, the NTH message with bytes of a program that has a text, on one of some links, is the event `passed`, and the nodes'
//! messages after it are held for a moment. `ignore` ends that.
//! With `seed`, all that follows draws by another seed. After `originals`, all programs stand for good, and the run goes on in copies
//! of them: `copy` begins one, and `back` ends it with all that it has changed. `originals` is answered with `done`, or with why the
//! programs cannot be copied, in digits.
//! After `power`, the other ends of the connections of a program hear nothing of its end.
//! `wait` is answered with `at TIME`, an event a line, and a dot:
//!
//! ```text
//! connected ID | failed ID ERROR | bytes ID BYTES | ended ID | reset ID | exited ID STATUS | arrived ID DELAY DAMAGED
//! stands WAIT PROGRAM STEP | passed WAIT FROM TO BYTES
//! ```
//!
//! `dropped` is answered with lines `FROM TO COUNT` and a dot, and `figures` with `digest DIGITS`, `trace DIGITS`, figures, and a dot.
//! A trace has eight digits for each second: the digest at its end. A number answers
//! `ahead` (how far the wall clock of a node is ahead of the true time, as its programs read it), `calls` (how many calls a program
//! has made) and `bound` (how many sockets of a node have a port).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::CString;
use std::fmt::Write as _;
use std::io::{self, BufRead, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::rc::Rc;
use std::str::FromStr;
use std::time::Duration;

use crate::calls;
use crate::digest::Digest;
use crate::kernel::{
    watch, Asked, Awaited, Clock, Disturbance, Event, Failing, Fatal, Kernel, Kind, Losing, Loss, Nanos, Node,
    NodeId, ObjectId, Outside, Passed, Phase, ProcessId, Run, Settings, Template, Wanted, MICROSECOND, MILLISECOND,
    MONOTONIC_START, REALTIME_START,
};
use crate::start::{Root, SharedPages};

const CALL: Nanos = MICROSECOND;
const CLOCK_READ: Nanos = 100;
const SYNC: Nanos = MILLISECOND;
const QUANTUM: Nanos = 200 * MICROSECOND;
const FIRST_PORT: u16 = 40_000;
const LOOK: Duration = Duration::from_millis(100); // of processor time, so that other work of the machine matters little
const DONE: &str = "done\n";
const MOST_LINE: usize = 64 << 20;

/// What the program outside knows of one of its connections.
#[derive(Clone, Default)]
struct Told {
    id: u64,
    connected: bool,
    ended: bool,
}

/// What a run consists of, while the program outside says it.
struct Parts {
    settings: Settings,
    root: Option<PathBuf>,
    nodes: Vec<(String, Ipv4Addr)>,
    variables: Vec<String>,
    shown: Vec<PathBuf>,
    log: Option<PathBuf>,
}

/// Serves one run on standard input and output.
pub fn serve() -> Run<()> {
    let mut input = io::stdin().lock();
    let mut output = io::stdout().lock();
    let mut parts = Parts {
        settings: Settings {
            seed: 0,
            call: CALL,
            clock_read: CLOCK_READ,
            quantum: QUANTUM,
            preempt: 0.0,
            stalls: 0.0,
            trace_all: false,
            answers: true,
            look: LOOK,
        },
        root: None,
        nodes: Vec::new(),
        variables: Vec::new(),
        shown: Vec::new(),
        log: None,
    };
    let mut line = String::new();
    loop {
        if !read_line(&mut input, &mut line)? {
            return Ok(()); // the program outside went before the run began
        }
        if line == "ready" {
            break;
        }
        parts.take(&line)?;
    }
    let mut run = Driven { kernel: parts.build()?, known: Known::default(), originals: None };
    writeln!(output, "ready")?;
    output.flush()?;
    watch(run.kernel.settings.look);
    while read_line(&mut input, &mut line)? {
        if let Some(answer) = run.carry_out(&line)? {
            output.write_all(answer.as_bytes())?;
            output.flush()?;
        }
    }
    run.kernel.digest.flush()?;
    Ok(())
}

fn read_line(mut input: impl BufRead, line: &mut String) -> Run<bool> {
    line.clear();
    let count = (&mut input).take(MOST_LINE as u64).read_line(line)?;
    if line.ends_with('\n') {
        line.pop();
    }
    Ok(count > 0)
}

fn word<'a>(words: &mut impl Iterator<Item = &'a str>, line: &str) -> Run<&'a str> {
    words.next().ok_or_else(|| Fatal(format!("expected another word in the line {line:?}")))
}

fn value<'a, T: FromStr>(words: &mut impl Iterator<Item = &'a str>, line: &str) -> Run<T> {
    let text = word(words, line)?;
    text.parse().map_err(|_| Fatal(format!("{text:?} is not a value of its kind in the line {line:?}")))
}

fn bytes_of(digits: &str) -> Run<Vec<u8>> {
    if !digits.is_ascii() || digits.len() % 2 != 0 {
        return Err(Fatal("expected pairs of hexadecimal digits".into()));
    }
    (0..digits.len())
        .step_by(2)
        .map(|place| u8::from_str_radix(&digits[place..place + 2], 16))
        .collect::<Result<_, _>>()
        .map_err(|error| Fatal(format!("expected hexadecimal digits: {error}")))
}

fn digits_of(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

fn text_of(digits: &str) -> Run<String> {
    String::from_utf8(bytes_of(digits)?).map_err(|error| Fatal(format!("expected a text: {error}")))
}

/// Reads what a loss of power takes; None: what the seed draws.
fn losing<'a>(mut words: impl Iterator<Item = &'a str>, line: &str) -> Run<Option<Losing>> {
    let Some(what) = words.next() else { return Ok(None) };
    let is_torn = words.next() == Some("torn");
    Ok(Some(match what {
        "all" => Losing::All,
        "none" => Losing::These { lost: BTreeSet::new(), is_torn },
        numbers => {
            let lost = numbers.split('+').map(str::parse).collect::<Result<_, _>>();
            let lost = lost.map_err(|_| Fatal(format!("expected numbers of changes in the line {line:?}")))?;
            Losing::These { lost, is_torn }
        }
    }))
}

impl Parts {
    fn take(&mut self, line: &str) -> Run<()> {
        let mut words = line.split(' ');
        match word(&mut words, line)? {
            "seed" => self.settings.seed = value(&mut words, line)?,
            "root" => self.root = Some(text_of(word(&mut words, line)?)?.into()),
            "node" => self.nodes.push((word(&mut words, line)?.to_owned(), value(&mut words, line)?)),
            "variable" => self.variables.push(text_of(word(&mut words, line)?)?),
            "show" => self.shown.push(text_of(word(&mut words, line)?)?.into()),
            "log" => self.log = Some(text_of(word(&mut words, line)?)?.into()),
            "preempt" => self.settings.preempt = value(&mut words, line)?,
            "stalls" => self.settings.stalls = value(&mut words, line)?,
            "trace-all" => self.settings.trace_all = true,
            "all-stop" => self.settings.answers = false,
            "look" => self.settings.look = Duration::from_micros(value(&mut words, line)?),
            "cpu" => pin(value(&mut words, line)?)?,
            _ => return Err(Fatal(format!("the line {line:?} is not one of a run that begins"))),
        }
        Ok(())
    }

    fn build(self) -> Run<Kernel> {
        let path = self.root.ok_or_else(|| Fatal("a run needs `root`, a folder for its files".into()))?;
        let digest = Digest::new(self.log.as_deref())?;
        let root = Root::new(&path)?;
        for (name, _) in &self.nodes {
            root.add_node(name, &self.shown)?;
        }
        root.name_nodes(self.nodes.iter().map(|(name, address)| (name.as_str(), *address)))?;
        let pages = SharedPages::new(self.nodes.len(), self.settings.clock_read, MONOTONIC_START, REALTIME_START)?;
        let nodes: Vec<Node> = self
            .nodes
            .into_iter()
            .map(|(name, address)| Node {
                name,
                address,
                environment: self.variables.clone(),
                clock: Clock::default(),
                clock_offset: 0,
                is_down: false,
                shared_memory: None,
                next_port: FIRST_PORT,
                heard: 0,
                syncs: 0,
                sync_mean: SYNC,
                longest_sync: 0,
                writes: 0,
            })
            .collect();
        let Some(node) = nodes.len().checked_sub(1) else { return Err(Fatal("a run needs a node".into())) };
        let mut kernel = Kernel::new(self.settings, root, Some(Rc::new(pages)), nodes, digest);
        kernel.outside = Some(Outside { node, ..Outside::default() });
        Ok(kernel)
    }
}

/// Lets the controller and all its programs use one processor only: they never run at the same time.
fn pin(processor: usize) -> Run<()> {
    // SAFETY: the set is plain bits.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if result < 0 {
        Err(io::Error::last_os_error().into())
    } else {
        Ok(())
    }
}

/// What the numbers of the program outside stand for.
#[derive(Clone, Default)]
struct Known {
    objects: HashMap<u64, ObjectId>,
    told: BTreeMap<ObjectId, Told>,
    /// The programs whose end the program outside has not heard of, by their numbers.
    programs: BTreeMap<u64, ProcessId>,
}

/// A run that goes on.
struct Driven {
    kernel: Kernel,
    known: Known,
    /// What its copies begin with, once there are any.
    originals: Option<(Template, Known)>,
}

impl Driven {
    /// Carries out a line. Returns the answer, if it has one.
    fn carry_out(&mut self, line: &str) -> Run<Option<String>> {
        let mut words = line.split(' ');
        let command = word(&mut words, line)?;
        let kernel = &mut self.kernel;
        match command {
            "wait" => {
                let until = match word(&mut words, line)? {
                    "-" => None,
                    time => Some(time.parse().map_err(|_| Fatal(format!("{time:?} is not a time")))?),
                };
                return self.wait(until).map(Some);
            }
            "figures" => return self.figures().map(Some),
            "connect" => {
                let id = value(&mut words, line)?;
                let address = SocketAddrV4::new(value(&mut words, line)?, value(&mut words, line)?);
                self.connect(id, address);
            }
            "send" => {
                let id: u64 = value(&mut words, line)?;
                let bytes = bytes_of(word(&mut words, line)?)?;
                if let Some(object) = self.known.objects.get(&id) {
                    kernel.outside_sends(*object, &bytes);
                }
            }
            "finish" => {
                if let Some(object) = self.known.objects.get(&value(&mut words, line)?) {
                    kernel.outside_finishes(*object);
                }
            }
            "close" => {
                if let Some(object) = self.known.objects.remove(&value(&mut words, line)?) {
                    self.known.told.remove(&object);
                    kernel.outside_closes(object);
                }
            }
            "start" | "talk" => {
                let stream: Option<u64> = if command == "talk" { Some(value(&mut words, line)?) } else { None };
                let id = value(&mut words, line)?;
                let node = self.node(word(&mut words, line)?)?;
                let (folder, output) = (text_of(word(&mut words, line)?)?, text_of(word(&mut words, line)?)?);
                let arguments = words.map(text_of).collect::<Run<Vec<_>>>()?;
                let ends = stream.map(|_| self.kernel.outside_talks(node));
                let first = self.kernel.start(node, arguments, folder, output, ends.map(|(_, inner)| inner))?;
                if let (Some(id), Some((outer, _))) = (stream, ends) {
                    self.known.objects.insert(id, outer);
                    self.known.told.insert(outer, Told { id, connected: true, ended: false });
                }
                self.known.programs.insert(id, first);
                return Ok(Some(DONE.into()));
            }
            "originals" => {
                let answer = match kernel.become_template()? {
                    Ok(template) => {
                        self.originals = Some((template, self.known.clone()));
                        DONE.into()
                    }
                    Err(refusal) => format!("{}\n", digits_of(refusal.as_bytes())),
                };
                return Ok(Some(answer));
            }
            "copy" | "back" => {
                let Some((template, known)) = &self.originals else {
                    return Err(Fatal("a copy needs originals".into()));
                };
                if command == "copy" {
                    *kernel = template.copy()?;
                } else {
                    std::mem::replace(kernel, template.kernel()).end_copy(template)?;
                }
                self.known = known.clone();
                return Ok(Some(DONE.into()));
            }
            "dropped" => {
                let mut answer = String::new();
                for (from, to, count) in kernel.links.dropped(value(&mut words, line)?) {
                    let _ = writeln!(answer, "{} {} {count}", kernel.nodes[from].name, kernel.nodes[to].name);
                }
                answer.push_str(".\n");
                return Ok(Some(answer));
            }
            "ahead" => {
                let node = self.node(word(&mut words, line)?)?;
                return Ok(Some(format!("{}\n", self.kernel.ahead(node))));
            }
            "shows" => {
                let node = self.node(word(&mut words, line)?)?;
                return Ok(Some(format!("{}\n", self.kernel.monotonic(node))));
            }
            "slowed" => {
                let key: u64 = value(&mut words, line)?;
                let mut answer = String::new();
                for slow in kernel.slow.iter().filter(|slow| slow.key == key) {
                    let (count, longest) = kernel.slowed(slow);
                    let _ = writeln!(answer, "{} {count} {longest} {}", kernel.nodes[slow.node].name, slow.before);
                }
                answer.push_str(".\n");
                return Ok(Some(answer));
            }
            "failed" => {
                let key = value(&mut words, line)?;
                let mut answer = String::new();
                for failure in kernel.failures.iter().filter(|failure| failure.key == key) {
                    let (program, file) = (failure.program.as_bytes(), failure.file.as_os_str().as_encoded_bytes());
                    let _ = writeln!(
                        answer,
                        "{} {} {} {} {} {}",
                        kernel.nodes[failure.node].name,
                        failure.at,
                        failure.call,
                        failure.number,
                        digits_of(program),
                        digits_of(file)
                    );
                }
                answer.push_str(".\n");
                return Ok(Some(answer));
            }
            "lose" => {
                let node = self.node(word(&mut words, line)?)?;
                self.kernel.say(line);
                let folder = text_of(word(&mut words, line)?)?;
                let losing = losing(words, line)?;
                let Loss { files, changed, bytes } = self.kernel.lose(node, &folder, losing)?;
                return Ok(Some(format!("{files} {changed} {bytes}\n")));
            }
            "unsynced" => {
                let node = self.node(word(&mut words, line)?)?;
                let numbers: Vec<_> = self.kernel.unsynced(node).iter().map(u64::to_string).collect();
                return Ok(Some(format!("{}\n", numbers.join(" "))));
            }
            "noted" => {
                let lines = kernel.steps.noted.iter().map(|step| kernel.told(step) + "\n").collect::<String>();
                return Ok(Some(lines + ".\n"));
            }
            "volume" => {
                let node = self.node(word(&mut words, line)?)?;
                let folder = text_of(word(&mut words, line)?)?;
                let data = self.kernel.add_volume(node, &folder, word(&mut words, line)? == "1")?;
                return Ok(Some(format!("{}\n", digits_of(data.as_os_str().as_encoded_bytes()))));
            }
            "takes" => {
                let node = self.node(word(&mut words, line)?)?;
                self.kernel.say(line);
                return Ok(Some(format!("{}\n", u8::from(self.kernel.takes_file(node)?))));
            }
            "calls" => {
                let first = self.known.programs.get(&value(&mut words, line)?);
                return Ok(Some(format!("{}\n", first.map_or(0, |first| kernel.processes[*first].calls))));
            }
            "bound" => {
                let node = self.node(word(&mut words, line)?)?;
                let port = value(&mut words, line)?;
                return Ok(Some(format!("{}\n", self.kernel.ports.get(&(node, port)).map_or(0, Vec::len))));
            }
            _ => {
                kernel.say(line);
                self.change(command, &mut words, line)?;
                if matches!(command, "kill" | "power") {
                    return Ok(Some(DONE.into()));
                }
            }
        }
        Ok(None)
    }

    /// Carries out a line that changes the world.
    fn change<'a>(&mut self, command: &str, words: &mut impl Iterator<Item = &'a str>, line: &str) -> Run<()> {
        match command {
            "kill" | "pause" | "resume" | "power" => {
                let id: u64 = value(words, line)?;
                let Some(&first) = self.known.programs.get(&id) else { return Ok(()) }; // it has ended by itself
                match command {
                    "kill" => self.kernel.kill_program(first)?,
                    "power" => self.kernel.lose_power(first)?,
                    _ => self.kernel.pause_program(first, command == "pause"),
                }
            }
            "fill" => {
                let node = self.node(word(words, line)?)?;
                self.kernel.fill(node, word(words, line)? == "1")?;
            }
            "fail" => {
                let key = value(words, line)?;
                let node = self.node(word(words, line)?)?;
                let folder = text_of(word(words, line)?)?;
                let operation = value(words, line)?;
                let pattern = CString::new(bytes_of(word(words, line)?)?)
                    .map_err(|_| Fatal("a pattern of files has a zero byte".into()))?;
                let (first, times, error) = (value(words, line)?, value(words, line)?, value(words, line)?);
                let failing = Failing { operation, pattern, first, times, error };
                self.kernel.fail_calls(key, node, &folder, failing)?;
            }
            "settle" => {
                let node = self.node(word(words, line)?)?;
                let folder = text_of(word(words, line)?)?;
                let file = match word(words, line)? {
                    "-" => None,
                    digits => Some(text_of(digits)?),
                };
                self.kernel.settle(node, &folder, file.as_deref())?;
            }
            "sync" => {
                let node = self.node(word(words, line)?)?;
                self.kernel.nodes[node].sync_mean = value(words, line)?;
            }
            "slow" => {
                let key = value(words, line)?;
                let node = self.node(word(words, line)?)?;
                self.kernel.slow_down(key, node, value(words, line)?);
            }
            "speed" => {
                let node = self.node(word(words, line)?)?;
                match value(words, line)? {
                    0 => return Err(Fatal("a clock has a speed".into())),
                    speed => self.kernel.set_speed(node, speed),
                }
            }
            "offset" => {
                let node = self.node(word(words, line)?)?;
                self.kernel.set_offset(node, value(words, line)?);
            }
            "seed" => self.kernel.reseed(value(words, line)?),
            "steps" => self.kernel.steps.notes = true,
            "want" => {
                let number = value(words, line)?;
                let call = Some(word(words, line)?.to_owned()).filter(|call| call != "any");
                let pattern = CString::new(bytes_of(word(words, line)?)?)
                    .map_err(|_| Fatal("a pattern of files has a zero byte".into()))?;
                let nth = value(words, line)?;
                let nodes = words.map(|name| self.node(name)).collect::<Run<Vec<_>>>()?;
                self.kernel.steps.wanted.insert(number, Wanted { nodes, call, pattern, nth, seen: BTreeMap::new() });
            }
            "stall" => {
                let (wait, node) = (value(words, line)?, self.node(word(words, line)?)?);
                let from = self.kernel.now + value::<Nanos>(words, line)?;
                let wall = word(words, line)? == "wall";
                let (left, length) = (value(words, line)?, value(words, line)?);
                self.kernel.stalls.asked.push(Asked { wait, node, from, wall, left, length });
            }
            "drop" => {
                let wait = value(words, line)?;
                self.kernel.steps.wanted.remove(&wait);
                self.kernel.stalls.asked.retain(|asked| asked.wait != wait);
            }
            "hear" => {
                let (number, left) = (value(words, line)?, value(words, line)?);
                let has = bytes_of(word(words, line)?.trim_start_matches('-'))?;
                let mut links = BTreeSet::new();
                while let Some(from) = words.next() {
                    links.insert((self.node(from)?, self.node(word(words, line)?)?));
                }
                self.kernel.passing.awaited.insert(number, Awaited { links, left, has });
            }
            "ignore" => {
                self.kernel.passing.awaited.remove(&value(words, line)?);
            }
            "mend" => self.kernel.mend(value(words, line)?),
            "cut" | "disturb" | "probe" => {
                let number = value(words, line)?;
                let (from, to) = (self.node(word(words, line)?)?, self.node(word(words, line)?)?);
                match command {
                    "cut" => self.kernel.links.cut(number, from, to),
                    "probe" => self.kernel.probe(number, from, to, value(words, line)?),
                    _ => {
                        let disturbance = Disturbance {
                            lose: value(words, line)?,
                            duplicate: value(words, line)?,
                            damage: value(words, line)?,
                            delay: value(words, line)?,
                            jitter: value(words, line)?,
                            hurry: value(words, line)?,
                            rate: value(words, line)?,
                            queue: value(words, line)?,
                        };
                        self.kernel.links.disturb(number, from, to, disturbance);
                    }
                }
            }
            "link" => {
                let (from, to) = (self.node(word(words, line)?)?, self.node(word(words, line)?)?);
                let between = self.kernel.links.link(from, to);
                between.delay = (value(words, line)?, value(words, line)?);
                between.mean = value(words, line)?;
                between.late = value(words, line)?;
            }
            _ => return Err(Fatal(format!("the controller does not know the line {line:?}"))),
        }
        Ok(())
    }

    fn node(&self, name: &str) -> Run<NodeId> {
        self.kernel
            .nodes
            .iter()
            .position(|node| node.name == name)
            .ok_or_else(|| Fatal(format!("there is no node {name:?}")))
    }

    fn connect(&mut self, id: u64, address: SocketAddrV4) {
        let object = self.kernel.outside_connects(address);
        self.known.objects.insert(id, object);
        self.known.told.insert(object, Told { id, ..Told::default() });
    }

    /// Runs the simulation until there is something to tell, or until a time.
    fn wait(&mut self, until: Option<Nanos>) -> Run<String> {
        if let Some(outside) = &mut self.kernel.outside {
            outside.turn += 1;
            outside.is_due = false;
            let turn = outside.turn;
            if let Some(until) = until {
                let at = until.max(self.kernel.now);
                self.kernel.at(at, Event::Outside { turn });
            }
        }
        let mut events = String::new();
        loop {
            self.kernel.run()?;
            self.tell(&mut events);
            let is_due = self.kernel.outside.as_ref().is_some_and(|outside| outside.is_due);
            if is_due || !events.is_empty() || self.kernel.next_event().is_none() {
                break;
            }
        }
        let answer = format!("at {}\n{events}.\n", self.kernel.now);
        self.kernel.digest.bytes(answer.as_bytes());
        Ok(answer)
    }

    /// Tells what has become of connections and processes.
    fn tell(&mut self, events: &mut String) {
        let changed = self.kernel.outside.as_mut().map_or_else(BTreeSet::new, |outside| {
            outside.has_ended = false;
            std::mem::take(&mut outside.changed)
        });
        for object in changed {
            let Some(told) = self.known.told.get_mut(&object) else { continue };
            let id = told.id;
            let Kind::Stream(stream) = &mut self.kernel.objects[object].kind else { continue };
            let bytes: Vec<u8> = stream.received.drain(..).collect();
            let (phase, error, is_reset, has_ended) =
                (stream.phase, stream.error, stream.is_reset, stream.peer_ended);
            if phase == Phase::Failed && !told.ended {
                told.ended = true;
                let _ = writeln!(events, "failed {id} {error}");
            }
            if phase == Phase::Connected && !told.connected {
                told.connected = true;
                let _ = writeln!(events, "connected {id}");
            }
            if !bytes.is_empty() {
                let _ = writeln!(events, "bytes {id} {}", digits_of(&bytes));
            }
            if (is_reset || has_ended) && !told.ended {
                told.ended = true;
                let _ = writeln!(events, "{} {id}", if is_reset { "reset" } else { "ended" });
            }
            if !bytes.is_empty() {
                self.kernel.outside_read(object, bytes.len());
            }
        }
        for probe in self.kernel.links.probed.drain(..) {
            let _ = writeln!(events, "arrived {} {} {}", probe.id, probe.delay, u8::from(probe.is_damaged));
        }
        for Passed { wait, from, to, bytes } in self.kernel.passing.passed.drain(..) {
            let (from, to) = (&self.kernel.nodes[from].name, &self.kernel.nodes[to].name);
            let _ = writeln!(events, "passed {wait} {from} {to} {}", digits_of(&bytes));
        }
        for (wanted, place, first) in std::mem::take(&mut self.kernel.steps.reached) {
            let program = self.known.programs.iter().find(|(_, of)| **of == first).map_or(0, |(id, _)| *id);
            let _ =
                writeln!(events, "stands {wanted} {program} {}", self.kernel.told(&self.kernel.steps.noted[place]));
        }
        let processes = &mut self.kernel.processes;
        self.known.programs.retain(|id, first| {
            let ended = &mut processes[*first];
            if !ended.is_alive {
                ended.is_reaped = true;
                let _ = writeln!(events, "exited {id} {}", ended.status);
            }
            ended.is_alive
        });
    }

    /// Returns the digest and the figures of the run so far.
    fn figures(&mut self) -> Run<String> {
        self.kernel.digest.flush()?;
        let (digest, trace) = (self.kernel.digest.text(), self.kernel.digest.trace());
        let counts = &self.kernel.counts;
        let reads = self.kernel.pages.as_ref().map_or(0, |pages| pages.reads());
        let total: u64 = counts.calls.values().sum();
        let mut answer = format!(
            "digest {digest}\ntrace {trace}\ntime {}\ncalls {total}\nstops {}\nanswered {}\nswitches {}\nclock-reads {reads}\ncounter-reads {}\nsignals {}\n\
             loops {}\nstalls {}\nmessages {}\n",
            self.kernel.now, counts.stops, counts.answered, counts.switches, counts.counters_read, counts.signals, counts.loops,
            counts.stalls, counts.messages
        );
        let mut by_count: Vec<_> = counts.calls.iter().collect();
        by_count.sort_by_key(|(number, count)| (std::cmp::Reverse(**count), **number));
        for (number, count) in by_count {
            let _ = writeln!(answer, "call {} {count}", calls::name(*number).replace(' ', "-"));
        }
        answer.push_str(".\n");
        Ok(answer)
    }
}
