//! What Labrys says to the switch on its standard input, and what the switch answers on its standard output.
//!
//! A request is one line of at most `MAX_LINE` bytes, an answer is one line, and each request gets one answer in its turn:
//!
//! - `set SOURCE TARGET NAME=NUMBER...` gives a link this rule in place of its own: `ok`
//! - `clear [SOURCE TARGET]` takes the rule of a link, or of all links; what waits goes out at once: `ok`
//! - `count` asks for the counts of all links that carried a frame, and for the frames that each port missed:
//!   `ok {"links": {"SOURCE TARGET": {"NAME": NUMBER...}...}, "missed": {"PORT": NUMBER...}}`
//! - `record PATH` writes the last packets that went out into a new file: `ok NUMBER`
//! - `quit` gives the ports back to the bridge: `ok`, and the switch ends
//!
//! Another request gets `error` and a reason, and changes nothing. The end of the input means `quit`.

use crate::link::{Counts, Rule};

pub const MAX_LINE: usize = 4096;

#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    Set { source: usize, target: usize, rule: Rule },
    Clear { source: usize, target: usize },
    ClearAll,
    Count,
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
        ["record", _, ..] => Ok(Request::Record { path: line.strip_prefix("record ").unwrap_or(line).to_owned() }),
        ["quit"] => Ok(Request::Quit),
        _ => Err(format!("expected set, clear, count, record or quit, not {line:?}")),
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

fn fill(rule: &mut Rule, name: &str, value: &str) -> Result<(), String> {
    let number: u64 = value.parse().map_err(|_| format!("expected a whole number for {name}, not {value:?}"))?;
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
