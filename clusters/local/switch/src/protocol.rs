//! What Labrys says to the switch on its standard input, and what the switch answers on its standard output.
//!
//! A request is one line of at most `MAX_LINE` bytes, an answer is one line, and each request gets one answer in its turn:
//!
//! - `set SOURCE TARGET NAME=NUMBER...` gives a link this rule in place of its own: `ok`
//! - `clear [SOURCE TARGET]` takes the rule of a link, or of all links; what waits goes out at once: `ok`
//! - `count` asks for the counts of all links that carried a frame, and for the frames that each port missed:
//!   `ok {"links": {"SOURCE TARGET": {"NAME": NUMBER...}...}, "missed": {"PORT": NUMBER...}}`
//! - `watch NUMBER nth=N [port=P] least=BYTES hold_us=US [has=HEX] links=SOURCE>TARGET,...` waits for the n-th packet of a sort on
//!   these links, and lets the packets between nodes stand still right after it: `ok`
//! - `watched NUMBER` asks for that: `ok {"count": N, "held": N}`, and with the packet also its `"source"`, `"target"`,
//!   `"source_port"`, `"target_port"`, `"bytes"`, and `"ago_us"`
//! - `unwatch NUMBER` ends the wait: `ok`
//! - `connections` asks what happened to the connections between nodes, in steps of 0.1 s of the monotonic clock:
//!   `ok {"dropped": N, "notes": [[STEP, "SOURCE", "TARGET", "WHAT", N]...]}`
//! - `record PATH` writes the last packets that went out into a new file: `ok NUMBER`
//! - `quit` gives the ports back to the bridge: `ok`, and the switch ends
//!
//! Another request gets `error` and a reason, and changes nothing. The end of the input means `quit`.

use crate::flows::Flows;
use crate::link::{Counts, Rule};
use crate::watch::{Waited, Watch};

pub const MAX_LINE: usize = 8192;
const MOST_HOLD_US: u64 = 10_000_000;

#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    Set { source: usize, target: usize, rule: Rule },
    Clear { source: usize, target: usize },
    ClearAll,
    Count,
    Connections,
    Watch { number: u64, watch: Watch },
    Watched { number: u64 },
    Unwatch { number: u64 },
    Record { path: String },
    Quit,
}

pub fn parse(line: &str, ports: &[String]) -> Result<Request, String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    match words[..] {
        ["set", source, target, ref members @ ..] => {
            let (source, target) = link(source, target, ports)?;
            let mut rule = Rule::default();
            for member in members {
                let (name, value) =
                    member.split_once('=').ok_or_else(|| format!("expected NAME=NUMBER, not {member:?}"))?;
                fill(&mut rule, name, value)?;
            }
            match rule.refusal() {
                Some(reason) => Err(reason.to_owned()),
                None => Ok(Request::Set { source, target, rule }),
            }
        }
        ["clear", source, target] => {
            let (source, target) = link(source, target, ports)?;
            Ok(Request::Clear { source, target })
        }
        ["clear"] => Ok(Request::ClearAll),
        ["count"] => Ok(Request::Count),
        ["connections"] => Ok(Request::Connections),
        ["watch", number, ref members @ ..] => {
            let mut watch = Watch::default();
            for member in members {
                let (name, value) =
                    member.split_once('=').ok_or_else(|| format!("expected NAME=VALUE, not {member:?}"))?;
                select(&mut watch, name, value, ports)?;
            }
            if watch.nth == 0 || watch.links.is_empty() {
                return Err("a watch has a number from 1 and links".to_owned());
            }
            Ok(Request::Watch { number: whole("the watch", number)?, watch })
        }
        ["watched", number] => Ok(Request::Watched { number: whole("the watch", number)? }),
        ["unwatch", number] => Ok(Request::Unwatch { number: whole("the watch", number)? }),
        ["record", _, ..] => Ok(Request::Record { path: line.strip_prefix("record ").unwrap_or(line).to_owned() }),
        ["quit"] => Ok(Request::Quit),
        _ => Err(format!(
            "expected set, clear, count, connections, watch, watched, unwatch, record or quit, not {line:?}"
        )),
    }
}

fn link(source: &str, target: &str, ports: &[String]) -> Result<(usize, usize), String> {
    let find = |name: &str| {
        let known = || format!("there is no port {name:?}; there are: {}", ports.join(", "));
        ports.iter().position(|port| port == name).ok_or_else(known)
    };
    let (from, to) = (find(source)?, find(target)?);
    if from == to {
        return Err(format!("a link joins two ports, not {source:?} with itself"));
    }
    Ok((from, to))
}

fn whole(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("expected a whole number for {name}, not {value:?}"))
}

fn select(watch: &mut Watch, name: &str, value: &str, ports: &[String]) -> Result<(), String> {
    match name {
        "nth" => watch.nth = whole(name, value)?,
        "port" => watch.port = value.parse().map_err(|_| format!("expected a port, not {value:?}"))?,
        "least" => watch.least = whole(name, value)? as usize,
        "hold_us" => watch.hold_ns = whole(name, value)?.min(MOST_HOLD_US) * 1000,
        "has" => {
            watch.has = bytes_of(value).ok_or_else(|| format!("expected bytes in hexadecimal, not {value:?}"))?;
        }
        "links" => {
            for each in value.split(',') {
                let (source, target) =
                    each.split_once('>').ok_or_else(|| format!("expected SOURCE>TARGET, not {each:?}"))?;
                let (source, target) = link(source, target, ports)?;
                watch.links.push(source * ports.len() + target);
            }
        }
        _ => return Err(format!("a watch has no {name:?}")),
    }
    Ok(())
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn fill(rule: &mut Rule, name: &str, value: &str) -> Result<(), String> {
    let number = whole(name, value)?;
    let share = || u32::try_from(number).map_err(|_| format!("{name} is too large"));
    let times = |unit: u64| number.checked_mul(unit).ok_or_else(|| format!("{name} is too large"));
    match name {
        "seed" => rule.seed = number,
        "lose" => rule.lose = share()?,
        "duplicate" => rule.duplicate = share()?,
        "damage" => rule.damage = share()?,
        "hurry" => rule.hurry = share()?,
        "delay_us" => rule.delay_ns = times(1000)?,
        "jitter_us" => rule.jitter_ns = times(1000)?,
        "bits_per_s" => rule.bits_per_s = number,
        "burst_bytes" => rule.burst_bytes = u64::from(share()?),
        "patience_us" => rule.patience_ns = times(1000)?,
        "cut" => rule.cut = number != 0,
        _ => return Err(format!("a rule has no {name:?}")),
    }
    Ok(())
}

/// The counts of links and ports as an object of JSON. Names of ports are names of devices, which need no escape.
pub fn counted<'a>(
    links: impl Iterator<Item = (&'a str, &'a str, &'a Counts)>,
    missed: impl IntoIterator<Item = (String, u64)>,
) -> String {
    let of_links = links.filter(|(_, _, counts)| counts.frames > 0);
    let links = object(of_links.map(|(source, target, counts)| {
        (format!("{source} {target}"), object(counts.named().map(|(name, number)| (name.to_owned(), number))))
    }));
    object([("links".to_owned(), links), ("missed".to_owned(), object(missed))])
}

/// What happened to connections as an object of JSON. `names` are those of the ports of a link.
pub fn connections<'a>(flows: &Flows, names: impl Fn(usize) -> (&'a str, &'a str)) -> String {
    let notes = flows.notes.iter().map(|((step, link, what), count)| {
        let (source, target) = names(*link);
        format!("[{step},\"{source}\",\"{target}\",\"{}\",{count}]", what.name())
    });
    let notes: Vec<String> = notes.collect();
    format!("{{\"dropped\":{},\"notes\":[{}]}}", flows.dropped, notes.join(","))
}

/// What came of a wait as an object of JSON. `names` are those of the ports of a link.
pub fn watched<'a>(waited: &Waited, names: impl Fn(usize) -> (&'a str, &'a str), now_ns: u64) -> String {
    let number = |name: &str, value: u64| (name.to_owned(), value.to_string());
    let mut members = vec![number("count", waited.count), number("held", waited.held)];
    if let Some(passed) = waited.passed {
        let (source, target) = names(passed.link);
        members.push(("source".to_owned(), format!("\"{source}\"")));
        members.push(("target".to_owned(), format!("\"{target}\"")));
        members.push(number("source_port", passed.ends.source_port.into()));
        members.push(number("target_port", passed.ends.target_port.into()));
        members.push(number("bytes", passed.bytes as u64));
        members.push(number("ago_us", now_ns.saturating_sub(passed.at_ns) / 1000));
    }
    object(members)
}

fn object<V: std::fmt::Display>(members: impl IntoIterator<Item = (String, V)>) -> String {
    let texts: Vec<String> = members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", texts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports() -> Vec<String> {
        ["control", "n1", "n2"].map(String::from).to_vec()
    }

    #[test]
    fn a_rule_has_its_numbers_in_its_units() {
        let line =
            "set n1 n2 seed=7 lose=1 duplicate=2 damage=3 hurry=4 delay_us=5 jitter_us=6 bits_per_s=8 burst_bytes=9 \
                    patience_us=10 cut=1";
        let rule = Rule {
            seed: 7,
            lose: 1,
            duplicate: 2,
            damage: 3,
            hurry: 4,
            delay_ns: 5000,
            jitter_ns: 6000,
            bits_per_s: 8,
            burst_bytes: 9,
            patience_ns: 10_000,
            cut: true,
        };
        assert_eq!(parse(line, &ports()), Ok(Request::Set { source: 1, target: 2, rule }));
    }

    #[test]
    fn a_watch_has_its_links_and_bytes() {
        let line = "watch 7 nth=3 port=2379 least=9 hold_us=5 has=0aFF links=n1>n2,n2>n1";
        let watch = Watch { links: vec![5, 7], nth: 3, port: 2379, least: 9, has: vec![10, 255], hold_ns: 5000 };
        assert_eq!(parse(line, &ports()), Ok(Request::Watch { number: 7, watch }));
        assert_eq!(parse("watched 7", &ports()), Ok(Request::Watched { number: 7 }));
        assert_eq!(parse("unwatch 7", &ports()), Ok(Request::Unwatch { number: 7 }));
    }

    #[test]
    fn a_path_may_have_spaces() {
        let path = String::from("/a b/packets.pcap");
        assert_eq!(parse("record /a b/packets.pcap", &ports()), Ok(Request::Record { path }));
    }

    #[test]
    fn bad_requests_are_refused_with_a_reason() {
        for (line, reason) in [
            ("", "expected set"),
            ("drop n1 n2", "expected set"),
            ("set n1 n3 lose=1", "no port \"n3\"; there are: control, n1, n2"),
            ("set n1 n1 lose=1", "itself"),
            ("set n1 n2 lose", "NAME=NUMBER"),
            ("set n1 n2 lose=-1", "whole number"),
            ("set n1 n2 lose=1000001", "at most"),
            ("set n1 n2 delay_us=18446744073709551615", "too large"),
            ("set n1 n2 speed=1", "no \"speed\""),
            ("clear n1", "expected set"),
            ("watch 1 nth=1", "links"),
            ("watch 1 nth=0 links=n1>n2", "from 1"),
            ("watch x nth=1 links=n1>n2", "whole number"),
            ("watch 1 nth=1 links=n1-n2", "SOURCE>TARGET"),
            ("watch 1 nth=1 links=n1>n2 has=a", "hexadecimal"),
            ("watch 1 nth=1 links=n1>n2 has=zz", "hexadecimal"),
            ("watch 1 nth=1 links=n1>n2 port=70000", "a port"),
            ("watch 1 nth=1 links=n1>n2 speed=1", "no \"speed\""),
        ] {
            let error = parse(line, &ports()).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }

    #[test]
    fn counts_are_an_object_of_the_links_that_carried_something() {
        let used = Counts { frames: 2, held_us: 3, ..Counts::default() };
        let idle = Counts::default();
        let links = [("n1", "n2", &used), ("n2", "n1", &idle)];
        let text = counted(links.into_iter(), [("n1".to_owned(), 4)]);
        assert!(text.starts_with("{\"links\":{\"n1 n2\":{\"frames\":2,\"bytes\":0,"), "{text}");
        assert!(text.ends_with("\"held_us\":3,\"held_max_us\":0}},\"missed\":{\"n1\":4}}"), "{text}");
        assert!(!text.contains("n2 n1"), "{text}");
    }
}
