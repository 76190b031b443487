import codecs
import csv
import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import Texts, class_name, read_texts

ROWS = [
    ("a fine film", "pos"),
    ('he said "dull", twice', "neg"),
    ("two\nlines", "pos"),
    ("plain", "neg"),
    ("שלום עולם 🙂", "pos"),
    ("tab\there", "neg"),
]
ONE_LINE = [(" ".join(text.split()), label) for text, label in ROWS]


def write_csv(path: Path, rows=ROWS, delimiter=",", encoding="utf-8") -> Path:
    with open(path, "w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["id", "review", "sentiment"])
        writer.writerows([i, *row] for i, row in enumerate(rows))
    return path


def write_jsonl(path: Path, rows=ROWS) -> Path:
    lines = [
        json.dumps({"review": text, "sentiment": label, "more": {"a": 1}}) for text, label in rows
    ]
    path.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return path


def write_parquet(path: Path, rows=ROWS) -> Path:
    pq.write_table(
        pa.table({"review": [t for t, _ in rows], "sentiment": [c for _, c in rows]}), path
    )
    return path


def write_lines(path: Path, rows=ONE_LINE) -> Path:
    path.write_text("".join(f"{label} {text}\n" for text, label in rows), encoding="utf-8")
    return path


def zipped(path: Path) -> Path:
    other = path.with_name(path.name + ".gz")
    other.write_bytes(gzip.compress(path.read_bytes()))
    return other


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize(
    ("name", "write", "rows", "format", "first"),
    [
        ("a.csv", write_csv, ROWS, "csv", 2),
        ("a.tsv", lambda path: write_csv(path, delimiter="\t"), ROWS, "tsv", 2),
        ("flat.tsv", lambda path: write_csv(path, ONE_LINE, delimiter="\t"), ONE_LINE, "tsv", 2),
        ("a.semi.csv", lambda path: write_csv(path, delimiter=";"), ROWS, "csv", 2),
        ("a.bar.csv", lambda path: write_csv(path, delimiter="|"), ROWS, "csv", 2),
        ("a.jsonl", write_jsonl, ROWS, "jsonl", 1),
        ("a.parquet", write_parquet, ROWS, "parquet", 1),
        ("a.txt", write_lines, ONE_LINE, "lines", 1),
        ("a.train", write_lines, ONE_LINE, "lines", 1),
        ("csv-of-no-ending", write_csv, ROWS, "csv", 2),
        ("json-of-no-ending", write_jsonl, ROWS, "jsonl", 1),
        ("parquet-of-no-ending", write_parquet, ROWS, "parquet", 1),
    ],
)
def test_every_format_gives_back_what_was_written(
    tmp_path, name, write, rows, format, first, compress
):
    path = write(tmp_path / name)
    texts = read_texts(zipped(path) if compress else path)
    assert list(zip(texts.texts, texts.labels, strict=True)) == rows
    assert texts.formats == (format,)
    assert texts.rows.tolist() == list(range(first, first + len(rows)))
    assert texts.dropped == ()


def test_several_files_keep_their_places(tmp_path):
    files = [
        write_csv(tmp_path / "a.csv"),
        write_jsonl(tmp_path / "b.jsonl"),
        write_lines(tmp_path / "c.txt"),
    ]
    texts = read_texts(files)
    assert len(texts) == 3 * len(ROWS)
    assert texts.place(0) == f"{files[0]}, row 2"
    assert texts.place(len(texts) - 1) == f"{files[2]}, row {len(ROWS)}"
    assert texts.formats == ("csv", "jsonl", "lines")
    part = texts.take([7, 0])
    assert part.texts == (texts.texts[7], texts.texts[0])
    assert part.place(0) == texts.place(7)


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-32", "utf-32"),
        ("cp1252", "cp1252"),
    ],
)
def test_encodings_are_recognised(tmp_path, encoding, said):
    rows = [("crème brûlée", "a"), ("naïve “quotes”", "b"), ("plain", "a")]
    texts = read_texts(write_csv(tmp_path / "a.csv", rows, encoding=encoding))
    assert texts.texts == tuple(text for text, _ in rows)
    assert texts.encodings == (said,)


@pytest.mark.parametrize(
    ("encoding", "mark"), [("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-le", b"")]
)
def test_a_named_encoding_is_obeyed(tmp_path, encoding, mark):
    path = tmp_path / "a.csv"
    path.write_bytes(mark + "text,label\ngrün,a\nrot,b\n".encode(encoding))
    assert read_texts(path, encoding=encoding).texts == ("grün", "rot")
    path.write_bytes("text,label\nпривет,a\nпока,b\n".encode("koi8-r"))
    assert read_texts(path, encoding="koi8-r").texts == ("привет", "пока")


def test_damaged_rows_are_reported_and_the_rest_is_read(tmp_path):
    path = tmp_path / "a.csv"
    good = "".join(f"schön {i},{'ab'[i % 2]}\n" for i in range(6)).encode()
    path.write_bytes(b"text,label\n" + good + "schön bro".encode() + b"\xffken,a\nschoen,b\n")
    texts = read_texts(path)
    assert len(texts) == 7
    assert texts.encodings == ("utf-8",)
    (entry,) = texts.dropped
    assert (entry.reason, entry.count) == ("undecodable", 1)
    assert str(entry.examples[0]) == f"{path}, row 8: 'schön bro\ufffdken'"


def test_every_reason_is_counted_with_its_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        "text,label\ngood,pos\n,pos\n   ,neg\nbad,neg\nwhat,\nwell, "
        "\nso,nan\ntoo,many,cells\nalone\n\nfine,pos,\n",
        encoding="utf-8",
    )
    texts = read_texts(path)
    assert texts.texts == ("good", "bad", "fine")
    assert texts.rows.tolist() == [2, 5, 12]
    found = {
        entry.reason: (entry.count, [e.place.split("row ")[1] for e in entry.examples])
        for entry in texts.dropped
    }
    assert found == {
        "empty": (2, ["3", "4"]),
        "unlabelled": (3, ["6", "7", "8"]),
        "malformed": (2, ["9", "10"]),
    }


def test_missing_values_of_json_and_parquet_are_dropped(tmp_path):
    path = tmp_path / "a.jsonl"
    lines = [
        {"text": "good", "label": 1},
        {"text": None, "label": 1},
        {"text": "no", "label": None},
        {"text": "x"},
        {"text": "n", "label": float("nan")},
        {"text": "bad", "label": 0},
        {"text": ["no"], "label": 0},
        {"label": 1},
        {"text": 42, "label": 1.0},
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\nnot json\n[1]\n", encoding="utf-8")
    texts = read_texts(path)
    assert texts.texts == ("good", "bad", "42")
    assert texts.rows.tolist() == [1, 6, 9]
    found = {entry.reason: entry.count for entry in texts.dropped}
    assert found == {"empty": 2, "unlabelled": 3, "malformed": 3}
    assert read_texts(path, labelled=False, text="text").texts[:3] == ("good", "no", "x")


def test_labels_of_any_type_become_classes_and_the_map_is_kept(tmp_path):
    path = tmp_path / "a.jsonl"
    labels = [1, 1.0, "1", " 1.0 ", True, "TRUE", 0, -2, "-2.0", 2.5]
    path.write_text(
        "\n".join(json.dumps({"text": f"t{i}", "label": c}) for i, c in enumerate(labels))
    )
    texts = read_texts(path)
    assert texts.labels == ("1", "1", "1", "1", "true", "true", "0", "-2", "-2", "2.5")
    assert texts.classes == ("-2", "0", "1", "2.5", "true")
    kinds = {(v.value, v.kind): (v.name, v.count) for v in texts.label_values}
    assert kinds["1", "int"] == ("1", 1)
    assert kinds["1", "str"] == ("1", 1)
    assert kinds["True", "bool"] == ("true", 1)
    assert all(class_name(v.value) == v.name for v in texts.label_values)


def test_cells_of_a_megabyte_nul_bytes_and_html_are_data(tmp_path):
    rows = [
        ("word " * 210_000, "a"),
        ("nul\0byte", "b"),
        ("<script>alert('x')</script>", "a"),
        ("=cmd|' /C calc'!A0", "b"),
    ]
    before = csv.field_size_limit()
    texts = read_texts(write_csv(tmp_path / "a.csv", rows))
    assert texts.texts == tuple(text for text, _ in rows)
    assert csv.field_size_limit() == before


def test_quotes_in_tsv_are_quotes(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text(
        'text\tlabel\n"quoted" start\ta\n"half\tb\n"whole ""cell"""\ta\n', encoding="utf-8"
    )
    assert read_texts(path).texts == ('"quoted" start', '"half', 'whole "cell"')


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_any_system(tmp_path, end):
    for name, content in {
        "a.csv": "text,label\ngood,x\nbad,y\n",
        "a.tsv": "text\tlabel\ngood\tx\nbad\ty\n",
        "a.txt": "x good\ny bad\n",
        "a.jsonl": '{"text": "good", "label": "x"}\n{"text": "bad", "label": "y"}\n',
    }.items():
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + content.replace("\n", end).encode())
        texts = read_texts(tmp_path / name)
        assert (texts.texts, texts.labels) == (("good", "bad"), ("x", "y"))


def test_a_sentence_with_commas_is_no_header(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 a long , review\n0 a bad , bad , bad film\n1 good\n0 not good\n")
    assert read_texts(path).labels == ("1", "0", "1", "0")


def test_columns_are_guessed_only_without_doubt(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Reviews,other\nx y,a\nz,b\n")
    assert read_texts(path).labels == ("a", "b")
    path.write_text("what,Label\nx y,a\nz,b\n")
    assert read_texts(path).texts == ("x y", "z")
    path.write_text("1,x y\n2,z\n")
    assert read_texts(path, header=False, text="2", label="1").labels == ("1", "2")
    path.write_text("anything\nx y\nz\n")
    assert read_texts(path, labelled=False).texts == ("x y", "z")


def test_files_may_be_read_without_labels(tmp_path):
    texts = read_texts(write_csv(tmp_path / "a.csv"), labelled=False)
    assert texts.labels == ()
    assert texts.texts == tuple(text for text, _ in ROWS)
    lines = read_texts(write_lines(tmp_path / "a.txt"), labelled=False, format="lines")
    assert lines.texts[0] == "pos a fine film"


def test_expected_classes_allow_one_and_refuse_strangers(tmp_path):
    path = write_lines(tmp_path / "a.txt", [("good", "pos"), ("fine", "pos")])
    assert read_texts(path, classes=["neg", "pos"], format="lines").classes == ("pos",)
    with pytest.raises(
        AttnlabError, match=r"a.txt, row 1: the label 'pos' is not one of the classes 'x', 'y'"
    ):
        read_texts(path, classes=["x", "y"], format="lines")


def test_parquet_without_its_package_names_the_extra(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(AttnlabError, match=r"pip install 'attnlab\[parquet\]'"):
        read_texts(path)


HEADER = b"text,label\n"
NASTY = {
    "empty.csv": (b"", {}, "is empty"),
    "header.csv": (HEADER, {}, "no row with text and label: there is no row below the header"),
    "blank.csv": (b"\n\n  \n", {}, "not clear which column"),
    "newlines.csv": (b"\n\n", {}, "has no row"),
    "blank.txt": (b"\n\n", {}, "format is not clear"),
    "one.csv": (HEADER + b"a,x\nb,x\n", {}, "2 rows have the same label 'x'"),
    "many.csv": (
        HEADER + b"".join(b"t%d,c%d\n" % (i, i) for i in range(60)),
        {},
        "60 different labels .*--label",
    ),
    "each.csv": (HEADER + b"a,x\nb,y\nc,z\n", {}, "3 rows have 3 different labels"),
    "column.csv": (
        b"review,sentiment\na,x\nb,y\n",
        {"text": "reviw"},
        "'review', 'sentiment'; did you mean 'review'",
    ),
    "label.csv": (
        b"review,sentiment\na,x\nb,y\n",
        {"label": "Sentiment"},
        "no column 'Sentiment' for the label.*mean",
    ),
    "both.csv": (
        HEADER + b"a,x\nb,y\n",
        {"text": "label", "label": "label"},
        "both the column 'label'",
    ),
    "twice.csv": (
        b"text,text,label\na,b,x\nc,d,y\n",
        {"text": "text"},
        "several columns called 'text'",
    ),
    "doubt.csv": (
        b"a,b,c\n1,2,3\n",
        {},
        r"which column holds the text: the columns are 'a', 'b', 'c'.*--text",
    ),
    "rival.csv": (b"text,review,label\n1,2,3\n", {}, r"which column holds the text"),
    "nolabel.csv": (b"text,b,c\n1,2,3\n", {}, r"which column holds the label.*--label"),
    "bare.csv": (b"good,pos\nbad,neg\n", {}, r"header=False \(--no-header\)"),
    "open.csv": (
        HEADER + b'a,x\n"b,y\nc,x\nd,y\n',
        {},
        r"open.csv, row 3 \(it starts in line 3\): a quote is opened",
    ),
    "later.csv": (
        HEADER + b'"a\na",x\n"b,y\nc,x\n',
        {},
        r"row 3 \(it starts in line 4\): a quote is opened",
    ),
    "ragged.csv": (
        HEADER + b"a,x\nb,y,z,w\nc,d,e\n",
        {},
        "2 of its 3 rows cannot be read as csv.*row 3: 'b,y,z,w'",
    ),
    "undecoded.csv": (
        HEADER + b"a\xff,x\nb\xff,y\nc,x\n",
        {"encoding": "utf-8"},
        "2 undecodable.*--encoding",
    ),
    "encoding.csv": (HEADER, {"encoding": "klingon"}, "encoding='klingon' is not known"),
    "codec.csv": (HEADER, {"encoding": "base64"}, "encoding='base64' is not known"),
    "utf16.csv": ("text,label\na,x\nb,y\n".encode("utf-16-le"), {}, "--encoding utf-16-le"),
    "garbage.csv": (bytes(range(256)) * 40, {}, "is not a text file: .* control characters"),
    "book.csv": (b"PK\x03\x04rest", {}, "zip archive or an Excel workbook: save the sheet as CSV"),
    "cut.csv.gz": (
        gzip.compress(HEADER + b"a,x\nb,y\n" * 50)[:-20],
        {},
        "truncated or damaged: gzip",
    ),
    "fake.csv.gz": (b"\x1f\x8bnot gzip at all", {}, "truncated or damaged: gzip"),
    "array.json": (b'[{"text": "a", "label": "x"}]', {}, "one JSON array; expected JSON Lines"),
    "lines.jsonl": (b"not json\nneither\n", {}, "none of its first lines is a JSON object"),
    "keys.jsonl": (b'{"a": "b", "c": "d", "e": "f"}\n', {}, "columns are 'a', 'c', 'e'"),
    "half.jsonl": (
        b'{"text": "a", "label": "x"}\n{"text\n{{\n',
        {},
        "2 of its 3 rows cannot be read as jsonl",
    ),
    "fake.parquet": (b"text,label\na,x\n", {}, "not a Parquet file: it does not start with PAR1"),
    "cut.parquet": (b"PAR1 and no more", {}, "truncated or damaged"),
    "prose.txt": (
        b"once upon a time\nthere was a word\nand no label\nat all\n",
        {},
        "format is not clear.*--format",
    ),
    "format.csv": (
        HEADER,
        {"format": "xml"},
        "format='xml': expected one of csv, tsv, jsonl, parquet, lines",
    ),
    "label-only.txt": (b"1\n0\n", {"format": "lines"}, "no row with text and label: 2 empty"),
}


@pytest.mark.parametrize("name", NASTY)
def test_nasty_files_are_refused_in_words(tmp_path, name):
    content, settings, message = NASTY[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(AttnlabError, match=message) as caught:
        read_texts(path, **settings)
    assert name in str(caught.value) or "is not known" in message or "format=" in message


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(AttnlabError, match="is a folder: give the files in it"):
        read_texts(tmp_path)
    with pytest.raises(AttnlabError, match=r"nowhere.csv: there is no such file"):
        read_texts(tmp_path / "nowhere.csv")
    with pytest.raises(AttnlabError, match="no file was given"):
        read_texts([])


def test_examples_are_short_and_harmless(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        "text,label\n\x1b[31mred\u202e" + "x" * 500 + ",\ngood,a\nbad,b\n", encoding="utf-8"
    )
    (entry,) = read_texts(path).dropped
    shown = entry.examples[0].text
    assert len(shown) == 60
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_texts_need_one_label_each():
    with pytest.raises(AttnlabError, match="2 texts but 1 labels"):
        Texts.of(["a", "b"], ["x"])
    with pytest.raises(AttnlabError, match=r"must lie in 0\.\.1"):
        Texts.of(["a", "b"]).take(np.array([2]))
