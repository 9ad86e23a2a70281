//! Reading of transactions; `tests/unit/checker/test_formats_transactions.py` compares it with the readers of events.

use super::parse::{parse, Malformed, Parser, Stop, Syntax};
use super::{Table, Workload, INFO, OK};

fn read(syntax: Syntax, texts: &[&str]) -> Result<Table, Stop> {
    let mut parser = Parser::new(Workload::Lists, syntax);
    for text in texts {
        let end = parser.read(text.as_bytes(), 0, true)?;
        assert_eq!(end, text.len());
        parser.add(true);
    }
    Ok(parser.into_table())
}

/// The text of a transaction is what was read, however the lists of a key agree.
#[test]
fn lists_are_those_of_the_text() {
    let texts = [
        r#"[["r","x",[1,2]],["append","x",3]]"#,
        r#"[["r","x",[1,2,3]]]"#,
        r#"[["r","x",[1]],["r","y",[]]]"#,
        r#"[["r","x",[1,23]]]"#,
        r#"[["r","x",[1,2,3,4]],["r","x",null]]"#,
        r#"[["r","x",[]],["r","x",[7,2,3]],["r","x",[1,2,30,4]]]"#,
        r#"[["read","x",[1,2]]]"#,
        "[]",
    ];
    for syntax in [Syntax::Canonical, Syntax::Json] {
        let table = read(syntax, &texts).unwrap();
        for (number, text) in texts.iter().enumerate() {
            assert_eq!(table.text(number, Workload::Lists, true), *text);
        }
        assert_eq!(table.lists[0].len(), 4);
    }
}

/// Most reads share one list, so memory grows with the writes and not with the reads.
#[test]
fn beginnings_are_shared() {
    let list = (0..100).map(|elem| elem.to_string()).collect::<Vec<_>>().join(" ");
    let full = format!("[[:r 5 [{list}]]]");
    let table = read(Syntax::Edn, &[&full, &full, "[[:r 5 [0 1 2]]]", "[[:r 5 nil] [:append 5 100]]"]).unwrap();
    assert_eq!((table.flat.len(), table.lists[0].len()), (0, 100));
    assert_eq!(table.text(2, Workload::Lists, true), r#"[["r",5,[0,1,2]]]"#);
    assert_eq!(table.text(3, Workload::Lists, true), r#"[["r",5,null],["append",5,100]]"#);
}

/// A file is read here only if the canonical text of each key and element is evident.
#[test]
fn rare_values_are_left_to_python() {
    let wrong = [
        (Syntax::Json, r#"[["append","x",1.5]]"#),
        (Syntax::Json, r#"[["append","x",-0]]"#),
        (Syntax::Json, r#"[["append","x",01]]"#),
        (Syntax::Json, r#"[["append","x","\u0061"]]"#),
        (Syntax::Json, r#"[["append","x","é"]]"#),
        (Syntax::Json, r#"[["append","x",[1]]]"#),
        (Syntax::Json, r#"[["append","x",1,]]"#),
        (Syntax::Json, r#"[["append","x" 1]]"#),
        (Syntax::Json, r#"[["append","x",nil]]"#),
        (Syntax::Edn, "[[:append :x \"x\"]]"),
        (Syntax::Edn, "[[:append 1 \"r\"]]"),
        (Syntax::Edn, "[[:append x 1]]"),
        (Syntax::Edn, "[[:append :x 1N]]"),
        (Syntax::Edn, "[[\"append\" :x 1]]"),
    ];
    for (syntax, text) in wrong {
        assert!(matches!(read(syntax, &[text]), Err(Stop::Wrong(..))), "{text}");
    }
}

/// A text that ends within a transaction is no error of it.
#[test]
fn torn_texts_wait() {
    let text = "[[:r 1 [10 20]] [:append 2 \"ab\"] [:r 2 nil]]";
    for cut in 0..text.len() {
        let mut parser = Parser::new(Workload::Lists, Syntax::Edn);
        assert_eq!(parser.read(&text.as_bytes()[..cut], 0, true), Err(Stop::Torn), "cut at {cut}");
        assert_eq!(parser.read(text.as_bytes(), 0, true), Ok(text.len()));
        parser.add(true);
        let shown = r#"[["r",1,[10,20]],["append",2,"ab"],["r",2,null]]"#;
        assert_eq!(parser.into_table().text(0, Workload::Lists, true), shown);
    }
}

/// An error names the row, the value and the micro-operation.
#[test]
fn errors_have_a_place() {
    let cases = [
        (r#"[["r","x",null],5]"#, None, "not-a-micro-operation", 1),
        (r#"[["pop","x",1]]"#, None, "unknown-function", 0),
        (r#"[["pop","x"]]"#, None, "not-a-micro-operation", 0),
        (r#"[["r","x",null]]"#, Some(r#"[["r","y",null]]"#), "other-shape", 0),
        (r#"[["r","x",null]]"#, Some(r#"[["r","x",5]]"#), "read-no-list", 0),
    ];
    for (request, answer, what, place) in cases {
        let kind = if answer.is_some() { OK } else { INFO };
        let found = parse(Workload::Lists, &[kind], &[Some(request)], &[answer]).err().unwrap();
        let expected = Malformed { row: 0, answer: answer.is_some(), place: Some(place), what };
        assert_eq!(found, expected, "{request}");
    }
}
