"""EDN: every kind of value, exactly; errors with their position; bounds."""

from __future__ import annotations

import io
import math
import pickle
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.edn.lines import Lines, Row
from checker.edn.reader import Reader, load_all, loads
from checker.edn.tokens import PIECE_CHARACTERS, EdnError, Tokens
from checker.edn.values import Char, EdnList, EdnMap, EdnSet, Keyword, Ratio, Symbol, Tagged, canonical
from checker.edn.writer import dumps, keywordized
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

K = Keyword


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nil", None),
        ("true", True),
        ("false", False),
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("-12N", -12),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("0x1fN", 31),
        ("017", 15),
        ("36rZZ", 1295),
        ("1.5", 1.5),
        ("-2.", -2.0),
        ("1e3", 1000.0),
        ("1.25E-2", 0.0125),
        ("1.50M", Decimal("1.50")),
        ("7M", Decimal(7)),
        ("##Inf", math.inf),
        ("##-Inf", -math.inf),
        ("2/4", Ratio(1, 2)),
        ("-3/9", Ratio(-1, 3)),
        ("4/2", 2),
        ('""', ""),
        (r'"a\tb\n\"\\\r\f\b"', 'a\tb\n"\\\r\f\b'),
        (r'"\u00e9\101\ud83d\ude00"', "éA😀"),
        ('"two\nlines"', "two\nlines"),
        (r"\a", Char("a")),
        (r"\newline", Char("\n")),
        (r"\u0041", Char("A")),
        (r"\o101", Char("A")),
        (r"\(", Char("(")),
        ("\\,\n", Char(",")),
        (r"\"", Char('"')),
        (r"\\", Char("\\")),
        (":a", K("a")),
        (":a.b/c-d?", K("a.b/c-d?")),
        (":1", K("1")),
        ("foo/bar", Symbol("foo/bar")),
        ("/", Symbol("/")),
        ("-", Symbol("-")),
        ("->x", Symbol("->x")),
        ("()", EdnList()),
        ("[1 [2 3]]", (1, (2, 3))),
        ("(1, 2,, 3)", EdnList([1, 2, 3])),
        ("{:a 1, [1 2] {}}", EdnMap([(K("a"), 1), ((1, 2), EdnMap())])),
        ("#{1 2}", EdnSet([1, 2])),
        ('#inst "2026-01-01"', Tagged("inst", "2026-01-01")),
        ("#jepsen.history.Op{:index 3}", Tagged("jepsen.history.Op", EdnMap([(K("index"), 3)]))),
        ("#a #b nil", Tagged("a", Tagged("b", None))),
        ("#:n{:a 1 :m/b 2 :_/c 3 d 4 5 6}", loads("{:n/a 1 :m/b 2 :c 3 n/d 4 5 6}")),
        ("[1 #_ 2 3 #_ #_ 4 5 #_[6 {7 8}] 9]", (1, 3, 9)),
        ("; before\n[1 ; one\n 2]; after", (1, 2)),
        ('#object[java.lang.Foo 0x4d1 "it"]', Tagged("object", (Symbol("java.lang.Foo"), 0x4D1, "it"))),
        ("{:f :cas,:value[1 2]}", EdnMap([(K("f"), K("cas")), (K("value"), (1, 2))])),
    ],
)
def test_every_kind_of_form(text: str, value: Any) -> None:
    """Each notation is read as its value, with the right type."""
    read = loads(text)
    assert type(read) is type(value)
    assert canonical(read) == canonical(value)


def test_not_a_number_is_read() -> None:
    """##NaN is a float that equals no value, as usual."""
    assert math.isnan(loads("##NaN"))


def test_what_python_takes_for_equal_stays_apart() -> None:
    """True, 1, 1.0 and 1M are four members of a set and four keys of a map."""
    read = loads('#{1 true 1.0 1M "a" \\a :a a}')
    assert len(read) == 8
    assert [type(member) for member in read] == [int, bool, float, Decimal, str, Char, Keyword, Symbol]
    table = loads("{1 :int true :bool [1] :in-vector [true] :true-in-vector}")
    assert [table[key] for key in (1, True, (1,), (True,))] == list(
        map(K, ["int", "bool", "in-vector", "true-in-vector"])
    )
    assert 1.0 not in table
    assert loads("#{0 1}") != loads("#{false true}")


def test_equal_collections_are_one_key() -> None:
    """The order of members does not matter in sets and maps. A vector equals a list. So such keys are duplicates."""
    assert loads("#{1 2}") == loads("#{2 1}")
    assert hash(loads("{:a 1 :b #{1 2}}")) == hash(loads("{:b #{2 1} :a 1}"))
    assert loads("{(1 2) :x}")[(1, 2)] == K("x")
    for text in ("#{[1] (1)}", "{#{1 2} 1, #{2 1} 2}", "#{1.0 1.0}", "{:a 1 :a 1}"):
        with pytest.raises(EdnError, match="duplicate"):
            loads(text)


@pytest.mark.parametrize("value", [K("a"), Symbol("a"), Ratio(1, 2), Tagged("a", 1), EdnMap([(1, 2)]), EdnSet([1])])
def test_values_do_not_change_and_can_be_copied(value: Any) -> None:
    """A value that is a key must not change. A copy is equal."""
    with pytest.raises(AttributeError):
        value.name = "b"
    assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - made in the line itself


@pytest.mark.parametrize(
    "make",
    [
        lambda: K("a b"),
        lambda: K(""),
        lambda: K(":a"),
        lambda: Symbol("nil"),
        lambda: Symbol("1a"),
        lambda: Symbol("-1a"),
        lambda: Tagged("_a", 1),
        lambda: Tagged("", 1),
        lambda: Char("ab"),
        lambda: Ratio(2, 4),
        lambda: Ratio(1, 0),
    ],
)
def test_a_value_that_could_not_be_read_back_is_refused(make: Callable[[], Any]) -> None:
    """Every existing value can be written."""
    with pytest.raises(ValueError, match=r"."):
        make()


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("[1 2", 1, 5, "'[' of line 1 is never closed"),
        ("\n\n {:a\n 1", 4, 3, "'{' of line 3 is never closed"),
        ("(1 ]", 1, 4, "expected ')' for the '(' of line 1, found ']'"),
        ("1 }", 1, 3, "'}' closes nothing"),
        ("{:a}", 1, 4, "expected a value for the key :a"),
        ("{:a 1\n :b 2\n :a 3}", 3, 6, "the key :a is a duplicate"),
        ('  "abc', 1, 3, "the string that begins here is never closed"),
        ('[1\n "ab\ncd', 2, 2, "the string that begins here is never closed"),
        (r'["a\qb"]', 1, 2, "no escape"),
        (r"\abc", 1, 1, "no character"),
        (r"\ud800", 1, 1, "half of a surrogate pair"),
        ("[1a]", 1, 2, "'1a' is no number"),
        ("08", 1, 1, "'08' is no number"),
        ("2r12", 1, 1, "no integer of base 2"),
        ("1/0", 1, 1, "positive denominator"),
        ("1e99999999999999999999M", 1, 1, "exponent"),
        ("[:a : b]", 1, 5, "not the name of a keyword"),
        ("::a", 1, 1, "not the name of a keyword"),
        ("a/b/c", 1, 1, "not the name of a symbol"),
        ("[a @b]", 1, 4, "not EDN"),
        ("^{:a 1} b", 1, 1, "not EDN"),
        ("'a", 1, 1, "not EDN"),
        ("##Foo", 1, 1, "not EDN"),
        ('#"regex"', 1, 1, "not the name of a tag"),
        ("#'a/b", 1, 1, "not the name of a tag"),
        ("[#foo]", 1, 6, "expected a value after #foo"),
        ("#_", 1, 3, "'#_' of line 1 is never closed"),
        ("{:a #_ 1}", 1, 9, "expected a value for the key :a"),
        ("#:a [1]", 1, 7, "expected a map after #:a"),
        ("\x00PNG\x1a", 1, 1, "not the name of a symbol"),
        ("[é \u2003]", 1, 4, "not the name of a symbol"),
        ("1" * 5000, 1, 1, "expected a number of at most"),
    ],
)
def test_errors_say_where_and_what(text: str, line: int, column: int, reason: str) -> None:
    """Line and column are those of the misplaced token."""
    with pytest.raises(EdnError) as caught:
        load_all(text, name="h.edn")
    assert (caught.value.line, caught.value.column) == (line, column)
    assert reason in caught.value.reason
    assert str(caught.value).startswith(f"h.edn:{line}:{column}: ")


@pytest.mark.parametrize("opener", ["[", "(", "{", "#{", "{1 ", "#_ ", "#a ", "[{:a ", "#:a{:b "])
def test_nesting_is_bounded(opener: str) -> None:
    """A million open brackets or prefixes are an early error, and never exhaust the stack."""
    with pytest.raises(EdnError, match="nesting of at most 128"):
        load_all(opener * 1_000_000)


@pytest.mark.parametrize(
    "text", ['"' + "a" * 2_000_000, "a" * 2_000_000, ";" + " " * 2_000_000 + "x", '"' + "a\n" * 2_000_000]
)
def test_tokens_are_bounded(text: str) -> None:
    """A token above the bound is an error, also if it comes in lines."""
    with pytest.raises(EdnError, match=r"expected (a string of )?at most 1048576 characters"):
        list(Reader(io.StringIO(text), max_token=1 << 20))


def test_half_a_character_is_an_escape_in_a_string() -> None:
    """Java's strings have it, so Clojure writes and reads it; two halves side by side are a character."""
    assert loads(r'"a\ud800"') == "a\ud800"
    assert dumps("a\ud800") == r'"a\ud800"'
    assert loads(r'"\ud83d\ude00"') == "\U0001f600"


def test_the_depth_that_is_read_can_be_used() -> None:
    """Every value within the bound can be compared, hashed and written."""
    text = "{:a [#{" * 42 + "1" + "}]}" * 42
    assert dumps(loads(text)) == text
    assert hash(loads(text)) == hash(loads(text))


def test_forms_come_one_after_the_other() -> None:
    """The reader yields a form once it is complete. The text after it need not be EDN."""
    forms = iter(Reader(io.StringIO("{:a 1}\n[1\n 2]\n )")))
    assert next(forms) == EdnMap([(K("a"), 1)])
    assert next(forms) == (1, 2)
    with pytest.raises(EdnError, match="4:2"):
        next(forms)


def test_maps_over_several_lines_have_the_line_they_begin_in() -> None:
    """The fast path has the same lines, and so has an error after it."""
    reader = Reader(io.StringIO("{:a 1,\n :b [2]}\n" * 4 + "\n{:a 1\n:b\n\n[3 4]} \n 5\n]"), rows=True)
    forms = iter(reader)
    seen = [(type(next(forms)), reader.line) for _ in range(6)]
    assert seen == [(EdnMap, 1), (Row, 3), (Row, 5), (Row, 7), (Row, 10), (int, 14)]
    with pytest.raises(EdnError, match=r":15:1: '\]' closes nothing"):
        next(forms)


def test_forms_have_the_line_they_begin_in() -> None:
    """Also forms with a prefix, and forms that follow another one on the same line."""
    reader = Reader(io.StringIO('{:a 1}\n\n[1\n 2] 3 #t\n {}\n4 "a\nb" 5'))
    assert [(dumps(form), reader.line) for form in reader] == [
        ("{:a 1}", 1),
        ("[1 2]", 3),
        ("3", 4),
        ("#t {}", 4),
        ("4", 6),
        ('"a\\nb"', 6),
        ("5", 7),
    ]


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("[{:a 1}\n {:b 2}]\n", ["{:a 1}", "{:b 2}"]),
        ("; note\n({:a 1} [2] 3)", ["{:a 1}", "[2]", "3"]),
        ("{:a 1}\n[2]", ["{:a 1}", "[2]"]),
        ("[]", []),
        ("", []),
        ("#t [1]", ["#t [1]"]),
    ],
)
def test_a_collection_around_everything_can_be_seen_through(text: str, forms: list[str]) -> None:
    """A history is one vector, one list, or a sequence of maps."""
    assert [dumps(form) for form in Reader(io.StringIO(text), see_through=True)] == forms


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[{:a 1}", "expected ']' at the end"),
        ("[1]\n 2", "expected the end of the file after the last closing bracket in line 1"),
        ("[1] []", "expected the end of the file after"),
        ("[1]]", "closes nothing"),
        ("[1)", "closes nothing"),
    ],
)
def test_what_is_seen_through_has_to_end(text: str, reason: str) -> None:
    """A torn vector, or text after it, is an error."""
    with pytest.raises(EdnError, match=reason):
        list(Reader(io.StringIO(text), see_through=True))


names = st.from_regex(r"[a-zé*+!?$%&=<>_|-][a-z0-9.*+!?$%&=<>_|#:'-]{0,5}", fullmatch=True).filter(
    lambda name: name not in {"nil", "true", "false"}
)
qualified = names | st.builds("{}/{}".format, names, names)
texts = st.text(st.characters(codec="utf-8"), max_size=6)
atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.builds(lambda whole, half: Ratio(2 * whole * half + 1, 2 * half), st.integers(), st.integers(1, 99))
    | texts
    | st.builds(Char, st.characters(max_codepoint=0xD7FF))
    | st.builds(Keyword, qualified)
    | st.builds(Symbol, qualified.filter(lambda name: re.match(r"[-+]\d", name) is None))
)


def _distinct(members: list[Any]) -> list[Any]:
    return list({canonical(member): member for member in members}.values())


def _collections(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, max_size=4)
    return (
        some.map(tuple)
        | some.map(EdnList)
        | some.map(lambda members: EdnSet(_distinct(members)))
        | st.builds(lambda keys, value: EdnMap((key, value) for key in _distinct(keys)), some, inner)
        | st.builds(Tagged, qualified.filter(lambda name: name[0] not in "_+-.:'"), inner)
    )


edn = st.recursive(atoms, _collections, max_leaves=12)


def _typed(value: Any) -> Any:
    """Returns a form that distinguishes even values that EDN takes for equal: vectors and lists, orders, trailing zeros."""
    if isinstance(value, EdnMap):
        return EdnMap, [(_typed(key), _typed(member)) for key, member in value.items()]
    if isinstance(value, Tagged):
        return Tagged, value.tag, _typed(value.value)
    if isinstance(value, EdnSet | tuple):
        return type(value), [_typed(member) for member in value]
    return type(value), repr(value)


@given(value=edn)
def test_whatever_is_written_is_read_back(value: Any) -> None:
    """Values and types are preserved, and the text is stable."""
    text = dumps(value)
    read = loads(text)
    assert _typed(read) == _typed(value)
    assert dumps(read) == text


@given(values=st.lists(edn, max_size=5), size=st.integers(1, 9))
def test_pieces_of_any_size_make_no_difference(values: list[Any], size: int) -> None:
    """The boundaries of the stream's pieces do not matter."""
    text = "\n".join(map(dumps, values))

    class Pieces(io.StringIO):
        def readline(self, limit: int = -1, /) -> str:  # type: ignore[override]  # positional only
            return super().readline(min(limit, size))

    read = [_typed(value) for value in Reader(Pieces(text))]
    assert read == [_typed(value) for value in values] == [_typed(value) for value in load_all(text)]


@given(text=st.text(st.sampled_from('()[]{}#_"\\;:,@^ \n\t01a/M.-+eNu\x00é') | st.characters(), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """For any text, the reader fails only with an EdnError. Every accepted value can be written and read again."""
    try:
        values = load_all(text)
    except EdnError:
        return
    written = " ".join(map(dumps, values))
    assert [_typed(value) for value in load_all(written)] == [_typed(value) for value in values]


def test_a_long_line_is_read_in_pieces() -> None:
    """A whole history on one line, longer than a piece, yields the same forms."""
    line = "[" + " ".join(f'{{:i {i}, :s "x{i} \\" y"}}' for i in range(10_000)) + "]"
    assert len(line) > 3 * PIECE_CHARACTERS
    forms = list(Reader(io.StringIO(line), see_through=True))
    assert [form[K("i")] for form in forms] == list(range(10_000))
    assert forms[-1][K("s")] == 'x9999 " y'


@pytest.mark.parametrize("value", [object(), float, {"a": object()}, [b"bytes"], Decimal("NaN"), Char("\ud800")])
def test_what_edn_cannot_say_is_not_written(value: Any) -> None:
    """It is an error, never the repr of an object."""
    with pytest.raises(InputError):
        dumps(value)


def test_python_collections_are_written_too() -> None:
    """Python's lists, dicts and sets are written in a stable order. On request, text keys become keywords."""
    assert dumps({"a": [1, None], "b c": {"y", "x"}}) == '{"a" [1 nil], "b c" #{"x" "y"}}'
    assert dumps(keywordized({"valid?": True, "b c": [{"x": 1}]})) == '{:valid? true, "b c" [{:x 1}]}'


def test_nothing_deeper_than_can_be_read_is_written() -> None:
    """The writer has the reader's bound."""
    value: Any = 1
    for _ in range(5000):
        value = [value]
    with pytest.raises(InputError, match="nested at most 128 deep"):
        dumps(value)


WORDS = [
    "nil",
    "true",
    ":a",
    ":invoke",
    "0",
    "7",
    "-3",
    "007",
    "12345",
    "123456789012345678901",
    "1.5",
    "x",
    "1x",
    "٣",
    "##Inf",
]
SPACES = [" ", ", ", "  ", "\t", ",", "", "\n", ",\n "]


@st.composite
def op_lines(draw: st.DrawFn) -> str:
    """Lines with one map each, of a few shapes, some of them not quite maps."""
    shapes = draw(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5), min_size=1, max_size=3))
    word = st.sampled_from(WORDS)
    value = st.one_of(
        word,
        st.lists(word, max_size=3).map(lambda words: f"[{' '.join(words)}]"),
        st.sampled_from(
            ['"text"', '"a b"', r'"\n"', '"', "[[1]]", "{:k 1}", "#{1}", "#t 1", "[1", r"\a", "; no", "[1,2]"]
        ),
    )
    lines = []
    for shape in draw(st.lists(st.sampled_from(shapes), max_size=12)):
        members = draw(st.sampled_from(SPACES)).join(f":{key} {draw(value)}" for key in shape)
        lines.append(
            draw(st.sampled_from(["{", " {", "{ "])) + members + draw(st.sampled_from(["}", " }", "},", "} :x", ""]))
        )
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"]))


@settings(max_examples=250)
@given(text=op_lines())
def test_the_short_cut_for_lines_changes_nothing(text: str) -> None:
    """A file of maps on separate lines gives the same result with and without the fast path."""

    def outcome(*, short_cut: bool) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            if not short_cut:
                patch.setattr(Lines, "read", lambda _self, _text: None)
                patch.setattr(Tokens, "_spread", lambda _self, _text: None)
            reader, seen = Reader(io.StringIO(text)), []
            try:
                for form in reader:
                    seen.append((_typed(form), reader.line))  # noqa: PERF401 - forms before an error count too
            except EdnError as error:
                return seen, str(error)
            return seen, None

    assert outcome(short_cut=True) == outcome(short_cut=False)
