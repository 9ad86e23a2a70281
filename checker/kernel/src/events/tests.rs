//! The reader of plain histories; `tests/unit/checker/test_formats_plain.py` compares it with the readers of events.

use super::{Events, Unplain, Value, FAIL, INFO, OK};

fn fed(format: &str, text: &str) -> Result<Events, Unplain> {
    let mut events = Events::new(format, false, 1, None).unwrap();
    events.feed(text.as_bytes()).map(|_| events)
}

fn line(index: usize, kind: &str, process: usize, value: &str) -> String {
    format!("{{\"index\":{index},\"time\":{index},\"type\":\"{kind}\",\"process\":{process},\"f\":\"w\",\"value\":{value}}}\n")
}

/// An operation has the value of its invoke, and the result, type and end of its completion.
#[test]
fn events_become_operations() {
    let text = line(0, "invoke", 0, "[1,2]") + &line(1, "invoke", 1, "\"a\"") + &line(2, "ok", 0, "-7");
    let rows = fed("jsonl", &text).unwrap_or_else(|_| panic!()).rows;
    assert_eq!(rows.kind, [OK, INFO]);
    assert_eq!((rows.start, rows.end), (vec![0, 1], vec![2, -1]));
    assert_eq!(rows.value, [Value { kind: 2, first: 1, second: 2 }, Value { kind: 3, first: 0, second: 0 }]);
    assert_eq!(rows.result, [Value { kind: 1, first: -7, second: 0 }, Value::default()]);
}

/// A part of an event waits for the rest of its text, wherever the text is cut.
#[test]
fn texts_come_in_pieces() {
    let text = "[{:index 0, :time 5, :type :invoke, :process 3, :f :read, :value nil}\n\
        {:index 1, :time 6, :type :fail, :process 3, :f :read, :value nil, :error [:x \"y\"]}]\n";
    for cut in 0..text.len() {
        let mut events = Events::new("edn", false, 1, None).unwrap();
        let taken = events.feed(&text.as_bytes()[..cut]).unwrap_or_else(|_| panic!("cut at {cut}"));
        events.feed(&text.as_bytes()[taken..]).unwrap_or_else(|_| panic!("cut at {cut}"));
        assert!(events.may_end());
        assert_eq!((events.rows.kind.as_slice(), events.line), (&[FAIL][..], 3));
    }
}

/// What contradicts the rules of histories, or is rare, is left to the readers in Python.
#[test]
fn anything_else_is_not_plain() {
    let invoke = line(0, "invoke", 0, "1");
    for text in [
        line(0, "ok", 0, "1"),
        line(1, "invoke", 0, "1"),
        invoke.clone() + &line(1, "invoke", 0, "1"),
        invoke.replace("\"f\"", "\"g\""),
        invoke.replace("\"f\"", "\"type\""),
        invoke.replace(":1}", ":[1}"),
    ] {
        assert!(fed("jsonl", &text).is_err(), "{text}");
    }
    for text in ["#tag {:f :read}", "{:type :invoke :process 0}", "; a comment", "{:type :invoke, :process p, :f :w}"]
    {
        assert!(fed("edn", text).is_err(), "{text}");
    }
}

/// An index of a line without a header means nothing, and a missing value is null.
#[test]
fn lines_without_a_header_are_numbered() {
    let text = "{\"index\":7,\"type\":\"invoke\",\"process\":0,\"f\":\"r\"}\n\
        {\"type\":\"ok\",\"process\":0,\"f\":\"r\",\"value\":1}\n";
    let rows = fed("json-lines", text).unwrap_or_else(|_| panic!()).rows;
    assert_eq!((rows.start, rows.end, rows.result), (vec![0], vec![1], vec![Value { kind: 1, first: 1, second: 0 }]));
    assert!(fed("json-lines", &text.replacen("\"f\"", "\"time\":1,\"f\"", 1)).is_err());
}

/// Lines of a log that are no events are passed over, and what begins like an event must be one.
#[test]
fn a_log_has_other_lines() {
    let text = "WARN x\nINFO  jepsen.util - 3\t:invoke\t:cas\t[1 2]\nINFO  jepsen.util - Worker 3 starts\n\
        INFO [thread] jepsen.util - 3 :info :cas :timed-out\n";
    let events = fed("console-log", text).unwrap_or_else(|_| panic!());
    assert_eq!((events.rows.kind, events.count, events.line), (vec![INFO], 2, 5));
    assert!(fed("console-log", &text.replace(":cas\t[1 2]", ":cas")).is_err());
    assert!(fed("console-log", &text.replace(":invoke", ":begin")).is_err());
}
