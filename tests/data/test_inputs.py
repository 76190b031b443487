"""Inputs from anywhere: compressions, URLs, odd and mixed encodings; and bombs, which are refused."""

from __future__ import annotations

import bz2
import gzip
import lzma
import subprocess
import sys
import uuid
from pathlib import Path

import fsspec
import fsspec.config
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnlab import _places
from attnlab._errors import AttnlabError
from attnlab.data import TextSource, _prepare, index_stream, prepare_texts, read_texts
from tests.data.reviews import rows, write


def by_zstd(content: bytes) -> bytes:
    target = pa.BufferOutputStream()
    with pa.CompressedOutputStream(target, "zstd") as file:
        file.write(content)
    return target.getvalue().to_pybytes()


PACKERS = {
    "gzip": (".gz", gzip.compress),
    "bzip2": (".bz2", bz2.compress),
    "xz": (".xz", lzma.compress),
    "zstd": (".zst", by_zstd),
}


@pytest.fixture
def reviews(tmp_path) -> Path:
    return Path(write(tmp_path / "reviews.csv", rows(40)))


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("is_named", [True, False])
def test_compressions_are_known_by_their_first_bytes(tmp_path, reviews, name, is_named):
    ending, pack = PACKERS[name]
    path = tmp_path / (f"packed.csv{ending}" if is_named else "packed")
    path.write_bytes(pack(reviews.read_bytes()))
    assert read_texts(path).texts == read_texts(reviews).texts
    path.write_bytes(pack(reviews.read_bytes())[:-9])
    with pytest.raises(AttnlabError, match=f"packed.* truncated or damaged: {name}"):
        read_texts(path)
    path.write_bytes(pack(gzip.compress(reviews.read_bytes())))
    with pytest.raises(AttnlabError, match="compressed twice, within by gzip: unpack it once"):
        read_texts(path)


def test_zstd_without_its_package_names_the_extra(tmp_path, reviews, monkeypatch):
    path = tmp_path / "a.csv.zst"
    path.write_bytes(by_zstd(reviews.read_bytes()))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(AttnlabError, match=r"zstd.*pip install 'attnlab\[parquet\]'"):
        read_texts(path)


def url_of(content: bytes, name: str) -> str:
    url = f"memory://inputs-{uuid.uuid4().hex}/{name}"
    with fsspec.open(url, "wb") as file:
        file.write(content)  # pyright: ignore[reportAttributeAccessIssue]
    return url


def test_urls_are_read_as_files_are(reviews, cache, tmp_path):
    url = url_of(by_zstd(reviews.read_bytes()), "reviews.csv.zst")
    texts = read_texts(url)
    assert texts.texts == read_texts(reviews).texts
    assert texts.place(0) == f"{url}, row 2"
    (copy,) = (cache / "inputs").glob("*/*")
    before = copy.stat()
    at_once = prepare_texts(TextSource((url,)))
    streamed = prepare_texts(TextSource((url,)), folder=tmp_path / "corpus", stream_bytes=0)
    assert streamed.hash == at_once.hash
    assert copy.stat().st_mtime_ns == before.st_mtime_ns  # fetched once
    with fsspec.open(url, "wb") as file:
        file.write(b"text,label\nnew,a\nnewer,b\n")  # pyright: ignore[reportAttributeAccessIssue]
    assert read_texts(url).texts == ("new", "newer")
    assert len(list((cache / "inputs").glob("*/*"))) == 1  # the old copy is gone


def test_an_s3_server(reviews, cache, monkeypatch):
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options = {"endpoint_url": f"http://{host}:{port}", "key": "a", "secret": "b"}
        monkeypatch.setitem(fsspec.config.conf, "s3", options)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        fsspec.filesystem("s3").mkdir("bucket")
        url = "s3://bucket/deep/reviews.csv.zst"
        with fsspec.open(url, "wb") as file:
            file.write(by_zstd(reviews.read_bytes()))  # pyright: ignore[reportAttributeAccessIssue]
        assert read_texts(url).texts == read_texts(reviews).texts
        with fsspec.open(url, "wb") as file:
            file.write(by_zstd(b"text,label\nx,a\ny,b\n"))  # pyright: ignore[reportAttributeAccessIssue]
        assert read_texts(url).texts == ("x", "y")
        with pytest.raises(AttnlabError, match=r"s3://bucket/none.csv: there is no such file"):
            read_texts("s3://bucket/none.csv")
        with pytest.raises(AttnlabError, match=r"s3://nowhere/a.csv: there is no such file"):
            read_texts("s3://nowhere/a.csv")
        with pytest.raises(AttnlabError, match="s3://bucket/deep is a folder"):
            read_texts("s3://bucket/deep")
    finally:
        server.stop()


def test_parquet_at_a_url(cache, tmp_path):
    pq.write_table(pa.table({"text": ["x", "y"], "label": ["a", "b"]}), tmp_path / "a.parquet")
    url = url_of((tmp_path / "a.parquet").read_bytes(), "a.parquet")
    assert read_texts(url).texts == ("x", "y")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://no-such/a.csv", r"memory://no-such/a.csv: there is no such file"),
        ("klingon://a/b.csv", "unknown file system 'klingon'"),
        ("https://me:secret@host/a.csv", "holds a password or a signature"),
        ("https://host/a.csv?X-Amz-Signature=abc", "holds a password or a signature"),
    ],
)
def test_urls_that_cannot_be_read(cache, url, message):
    with pytest.raises(AttnlabError, match=message):
        read_texts(url)


def test_a_folder_at_a_url_and_a_copy_that_cannot_be_kept(cache, monkeypatch):
    url = url_of(b"text,label\na,x\nb,y\n", "a.csv")
    with pytest.raises(AttnlabError, match="is a folder: give the files in it"):
        read_texts(url.rpartition("/")[0])

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_places, "_download", fail)
    with pytest.raises(AttnlabError, match=r"cannot keep a copy .*No space.* ATTNLAB_CACHE"):
        read_texts(url)


def test_a_url_without_its_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(AttnlabError, match=r"pip install 'attnlab\[remote\]'"):
        read_texts("memory://a/b.csv")


def mixed(path: Path) -> Path:
    lines = ["text,label"] + [f"schön {i},{'ab'[i % 2]}" for i in range(6)]
    content = "\n".join(lines).encode() + "\ncafé noir,a\n“so so”,b\n".encode("cp1252")
    path.write_bytes(content + b"sch\xc3\xb6n bro\xffken,a\n" + "été,b\n".encode("cp1252"))
    return path


def test_lines_of_two_encodings_are_read_and_counted(tmp_path):
    path = mixed(tmp_path / "a.csv")
    texts = read_texts(path)
    assert texts.texts == (*(f"schön {i}" for i in range(6)), "café noir", "“so so”", "été")
    assert texts.encodings == ("utf-8+cp1252",)
    (entry,) = texts.recoded
    assert (entry.reason, entry.count) == ("not UTF-8, read as cp1252", 3)
    assert [example.place for example in entry.examples] == [
        f"{path}, line {i}" for i in (8, 9, 11)
    ]
    assert entry.examples[0].text == "café noir,a"
    assert [(entry.reason, entry.count) for entry in texts.dropped] == [("undecodable", 1)]
    named = read_texts(path, encoding="utf-8")
    assert named.recoded == ()
    assert [(entry.reason, entry.count) for entry in named.dropped] == [("undecodable", 4)]


def test_lines_of_two_encodings_in_a_stream(tmp_path):
    path = mixed(tmp_path / "a.csv")
    fractions = {"train": 0.5, "test": 0.5}
    made = index_stream({"train": [path]}, tmp_path / "made", fractions=fractions, block=2)
    for part in made.parts.values():
        assert part.recoded == read_texts(path).recoded
    source = TextSource((str(path),) * 5, distinct=False)
    at_once = prepare_texts(source).reading
    streamed = prepare_texts(source, folder=tmp_path / "corpus", stream_bytes=0).reading
    assert at_once["recoded"][0]["count"] == 15
    assert streamed == at_once


@pytest.mark.parametrize("size", [1, 100, 2**13 - 1, 2**13, 2**20 + 1])
def test_lines_are_decoded_whole_wherever_a_file_is_cut(tmp_path, size):
    path = tmp_path / "a.csv"
    text = f"text,label\n{'ö' * size},a\nß,b\n"
    path.write_bytes(text.encode() + "é,a\nà,b\n".encode("cp1252"))
    assert read_texts(path).texts == ("ö" * size, "ß", "é", "à")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    assert read_texts(path).texts == ("ö" * size, "ß", "é", "à")


@pytest.mark.parametrize(
    "encoding",
    ["rot13", "hex", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"],
)
def test_encodings_that_no_file_has_are_unknown(reviews, encoding):
    with pytest.raises(AttnlabError, match=f"encoding='{encoding}' is not known; expected"):
        read_texts(reviews, encoding=encoding)


def test_utf_16_without_its_mark(tmp_path):
    path = tmp_path / "a.csv"
    for text in ("text,label\na,x\nb,y\n", "text,label\nпривет,x\nпока,y\n"):
        for kind in ("utf-16-le", "utf-16-be"):
            path.write_bytes(text.encode(kind))
            with pytest.raises(AttnlabError, match=f"UTF-16 without its mark: .*--encoding {kind}"):
                read_texts(path)
            with pytest.raises(AttnlabError, match="does not start with the mark of utf-16: say"):
                read_texts(path, encoding="utf-16")
            assert read_texts(path, encoding=kind).labels == ("x", "y")


def test_utf_7_is_an_encoding(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\nschön,x\nprivé,y\n".encode("utf-7"))
    assert read_texts(path, encoding="utf-7").texts == ("schön", "privé")


def test_parquet_named_as_something_else(tmp_path):
    path = tmp_path / "a.csv"
    pq.write_table(pa.table({"text": ["x", "y"], "label": ["a", "b"]}), path)
    assert read_texts(path).texts == ("x", "y")
    with pytest.raises(AttnlabError, match="is a Parquet file, not csv: leave format='csv'"):
        read_texts(path, format="csv")


def test_parquet_of_every_encoding_and_strings_that_are_not_utf_8(tmp_path):
    path = tmp_path / "a.parquet"
    texts = ["fine", "schön", None, "dull", "fine"]
    table = pa.table({"text": texts, "label": list("abbab")})
    for encoding in (None, "PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"):
        ways = {"text": encoding, "label": encoding}
        way = {"use_dictionary": False, "column_encoding": ways} if encoding else {}
        pq.write_table(table, path, **way)
        assert read_texts(path).texts == ("fine", "schön", "dull", "fine")
    raw = pa.array([b"fine", "schön".encode("cp1252"), b"dull", b"fine", b"ok"])
    for text in (raw, raw.view(pa.string()), raw.dictionary_encode()):
        pq.write_table(pa.table({"text": text, "label": list("abbab")}), path)
        found = read_texts(path)
        assert found.texts == ("fine", "dull", "fine", "ok")
        assert [(entry.reason, entry.count) for entry in found.dropped] == [("undecodable", 1)]


def test_a_table_of_300_000_columns_is_read(tmp_path):
    path = tmp_path / "wide.csv"
    count = 300_000
    head = ",".join(["text", "label", *(f"c{i}" for i in range(count))])
    path.write_text(head + "\n" + "".join(f"t{i},{i % 2}{',' * count}\n" for i in range(3)))
    assert read_texts(path, text="text", label="label").texts == ("t0", "t1", "t2")
    path.write_text("text,label" + ",x" * 2**20 + "\na,b\n")
    with pytest.raises(AttnlabError, match="has 1,048,578 columns; expected at most"):
        read_texts(path, text="text")


HEAD = b"text,label\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("line.csv", HEAD + b"a," + b"x" * (2**24 + 1), r"line.csv, line 2: the line is longer"),
        ("cell.csv", HEAD + b'"' + b"x\n" * 2**23, r"cell.csv, lines 2 to \d+: the row is longer"),
        ("line.jsonl", b'{"text": "' + b"x" * 2**24, r"line.jsonl, line 1: the line is longer"),
        ("line.txt", b"a b\n" + b"x" * (2**24 + 1), r"line.txt, line 2: the line is longer"),
    ],
)
def test_endless_lines_and_cells_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AttnlabError, match=message):
        read_texts(tmp_path / name, format="lines" if name.endswith("txt") else None)


def parquet_bomb(text: str, count: int, path: Path) -> None:
    """Many rows of one text; the first row has another, short one."""
    numbers = pa.array([0] + [1] * (count - 1), pa.int32())
    table = pa.table(
        {
            "text": pa.DictionaryArray.from_arrays(numbers, ["short", text]),
            "label": pa.DictionaryArray.from_arrays(
                pa.array([0, 1] * (count // 2), pa.int32()), ["a", "b"]
            ),
        }
    )
    pq.write_table(table, path, compression="zstd", write_statistics=False, store_schema=False)


def test_long_texts_that_records_share_are_read(tmp_path):
    path = tmp_path / "a.parquet"
    texts = [f"{'x ' * 50_000}{k % 3}" if k % 2 else f"short {k}" for k in range(600)]
    table = pa.table({"text": texts, "label": [str(k % 2) for k in range(600)]})
    pq.write_table(table, path, row_group_size=250, compression="none")
    found = read_texts(path)
    assert found.texts == tuple(texts)
    assert found.rows.tolist() == list(range(1, 601))
    pq.write_table(pa.table({"text": ["a", "x" * (2**24 + 1)], "label": ["a", "b"]}), path)
    with pytest.raises(AttnlabError, match=r"a.parquet, row 2: the text is longer"):
        read_texts(path)


def delta_bomb(path: Path) -> None:
    texts = [f"{'x' * 500_000}{k % 2}" for k in range(200)]
    table = pa.table({"text": texts, "label": list("ab") * 100})
    encoding: dict[str, str] = {"text": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, path, compression="zstd", use_dictionary=False, column_encoding=encoding)


BOMBS = {
    "dictionary.parquet": lambda path: parquet_bomb("x " * 500_000, 100_000, path),
    "rows.parquet": lambda path: parquet_bomb("ab", 1_200_000, path),
    "delta.parquet": delta_bomb,
    "rows.csv.gz": lambda path: path.write_bytes(gzip.compress(HEAD + b"a,x\nb,y\n" * (2**23 + 9))),
    "line.csv.gz": lambda path: path.write_bytes(gzip.compress(HEAD + b"a " * 2**26)),
    "rows.csv.xz": lambda path: path.write_bytes(lzma.compress(HEAD + b"a,x\nb,y\n" * (2**23 + 9))),
    "rows.csv.zst": lambda path: path.write_bytes(by_zstd(HEAD + b"a,x\nb,y\n" * (2**23 + 9))),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_little_memory(tmp_path, name):
    BOMBS[name](tmp_path / name)
    assert (tmp_path / name).stat().st_size < 400_000
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from attnlab.data import read_texts\n"
        "try:\n    read_texts(sys.argv[1])\n"
        "except ValueError as error:\n    print(error)\n"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    call = [sys.executable, "-c", script, str(tmp_path / name)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=True)
    message, kibibytes = done.stdout.splitlines()
    assert "is taken for a decompression bomb; if it is right" in message
    assert int(kibibytes) < 2**20


def test_very_many_rows_are_read_in_a_stream(tmp_path, reviews, monkeypatch):
    source = TextSource((str(reviews),))
    at_once = prepare_texts(source, folder=tmp_path / "corpus")
    assert at_once.place is None
    monkeypatch.setattr(_prepare, "STREAM_ROWS", 20)
    streamed = prepare_texts(source, folder=tmp_path / "corpus")
    assert streamed.place is not None
    assert streamed.hash == at_once.hash
    assert streamed.reading == at_once.reading
