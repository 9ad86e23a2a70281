//! A switch between the nodes of a local cluster, which can disturb the packets of each directed link.
//!
//! usage: labrys-switch PARENT BRIDGE HOST PORT...
//!
//! It runs in the network namespace with the BRIDGE that joins the PORTs, one of each node. It takes the ports out of the bridge
//! and carries their frames itself. It makes a device HOST and joins it to the bridge, so that this namespace still reaches the
//! nodes, over the switch. `protocol` describes what it is told.
//!
//! It ends when its input ends, when the process PARENT ends, and at SIGTERM. Then it gives the ports back to the bridge. If it is
//! killed, the nodes have no network until another one, or `ip link set PORT master BRIDGE`, gives them back.

mod carrier;
mod flows;
mod frame;
mod kernel;
mod link;
mod protocol;
mod random;
mod recording;
mod segment;
mod watch;

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitCode;

use carrier::Carrier;
use kernel::{Bridge, Port};
use protocol::{Request, MAX_LINE};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever started it may be gone; then nobody reads this.
            let _ = writeln!(io::stdout(), "error {}", error.to_string().replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> io::Result<()> {
    let [parent, bridge, host, ports @ ..] = words else {
        return Err(io::Error::other("usage: labrys-switch PARENT BRIDGE HOST PORT..."));
    };
    let pid =
        parent.parse().map_err(|_| io::Error::other(format!("expected the id of a process, not {parent:?}")))?;
    let ends = [kernel::signals()?, kernel::watch(pid)?];
    kernel::go_first()?;
    let bridge = Bridge::new(bridge)?;
    let mut done = begun(&bridge, host, ports).and_then(|mut carrier| {
        let served = serve(&mut carrier, &ends);
        carrier.clear(); // what waits goes out
        served
    });
    for port in ports {
        done = done.and(bridge.give_back(port));
    }
    done?;
    say("ok");
    Ok(())
}

/// Takes the ports. After an error the caller gives all of them back.
fn begun(bridge: &Bridge, host: &str, ports: &[String]) -> io::Result<Carrier> {
    let mut taken = vec![Port::made(host)?];
    bridge.up(host)?;
    bridge.join(host)?;
    for port in ports {
        bridge.part(port)?;
        taken.push(Port::of_device(port)?);
    }
    let names = std::iter::once(host.to_owned()).chain(ports.iter().cloned()).collect();
    Ok(Carrier::new(names, taken))
}

/// Carries frames until somebody asks for the end.
fn serve(carrier: &mut Carrier, ends: &[OwnedFd]) -> io::Result<()> {
    say("ready");
    let mut input = Input::default();
    let first_port = 1 + ends.len();
    let asked = std::iter::once(0).chain(ends.iter().map(AsRawFd::as_raw_fd));
    let mut polled: Vec<libc::pollfd> = asked
        .chain(carrier.ports().iter().map(Port::raw))
        .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
        .collect();
    loop {
        kernel::wait(&mut polled, carrier.patience_ns());
        carrier.send_due();
        for port in (0..polled.len() - first_port).filter(|port| polled[first_port + port].revents != 0) {
            carrier.carry_from(port);
        }
        if polled[1..first_port].iter().any(|end| end.revents != 0) {
            return Ok(());
        }
        if polled[0].revents != 0 && !input.read(carrier)? {
            return Ok(());
        }
    }
}

/// What came on the standard input and is no whole line yet.
#[derive(Default)]
struct Input {
    rest: Vec<u8>,
}

impl Input {
    /// Reads and answers requests. Returns whether the switch goes on.
    fn read(&mut self, carrier: &mut Carrier) -> io::Result<bool> {
        let mut bytes = [0; MAX_LINE];
        let count = io::stdin().lock().read(&mut bytes)?;
        if count == 0 {
            return Ok(false);
        }
        self.rest.extend_from_slice(&bytes[..count]);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            match answer(String::from_utf8_lossy(&line).trim(), carrier) {
                Some(text) => say(&text),
                None => return Ok(false),
            }
        }
        if self.rest.len() > MAX_LINE {
            return Err(io::Error::other(format!("a request is longer than {MAX_LINE} bytes")));
        }
        Ok(true)
    }
}

/// Carries out a request. None: it asks for the end, which is answered when the ports are given back.
fn answer(line: &str, carrier: &mut Carrier) -> Option<String> {
    match protocol::parse(line, carrier.names()) {
        Err(reason) => return Some(format!("error {reason}")),
        Ok(Request::Quit) => return None,
        Ok(Request::Set { source, target, rule }) => carrier.set(source, target, Some(rule)),
        Ok(Request::Clear { source, target }) => carrier.set(source, target, None),
        Ok(Request::ClearAll) => carrier.clear(),
        Ok(Request::Record { path }) => {
            return Some(match carrier.recording.write(&path) {
                Ok(packets) => format!("ok {packets}"),
                Err(error) => format!("error {path}: {error}"),
            });
        }
        Ok(Request::Watch { number, watch }) => carrier.watch(number, watch),
        Ok(Request::Watched { number }) => {
            return Some(match carrier.watched(number) {
                Some(waited) => {
                    format!("ok {}", protocol::watched(waited, |link| carrier.ends(link), kernel::now_ns()))
                }
                None => format!("error there is no watch {number}"),
            });
        }
        Ok(Request::Unwatch { number }) => carrier.forget(number),
        Ok(Request::Connections) => {
            return Some(format!("ok {}", protocol::connections(&carrier.flows, |link| carrier.ends(link))));
        }
        Ok(Request::Count) => {
            let missed = carrier.missed();
            return Some(format!("ok {}", protocol::counted(carrier.counts(), missed)));
        }
    }
    Some("ok".to_owned())
}

/// Writes a line. The end of the reader shows as the end of the input, so an error here needs no answer.
fn say(line: &str) {
    let mut output = io::stdout().lock();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}
