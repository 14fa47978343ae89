"""Downloads from a local server that drops, cuts, corrupts, redirects, refuses and stalls."""

import hashlib
import io
import sys
import threading
import time
import types
import urllib.error
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="data sets need pandas")

from data_files import original, published, sample_frame, shrunk, zipped  # noqa: E402
from ellzero.datasets import fetch, load, loading  # noqa: E402
from ellzero.datasets.registry import ENTRIES  # noqa: E402

# What a server may do with a body; `wfile` and `connection` are those of the request.


def good(handler, body):
    handler.begin(200, {"Content-Length": len(body)})
    handler.wfile.write(body)


def without_length(handler, body):
    handler.begin(200, {})
    handler.wfile.write(body)


def dropped(handler, body):
    """Half of it, then the connection is gone."""
    handler.begin(200, {"Content-Length": len(body)})
    handler.wfile.write(body[: len(body) // 2])


def dropped_at_once(handler, body):
    pass


def cut(handler, body):
    """Half of it, and no word on how long it should have been."""
    without_length(handler, body[: len(body) // 2])


def cut_chunks(handler, body):
    handler.begin(200, {"Transfer-Encoding": "chunked"})
    handler.wfile.write(b"%x\r\n" % len(body) + body[: len(body) // 2])


def corrupt(handler, body):
    wrong = bytearray(body)
    for place in range(len(body) // 3, len(body), len(body) // 7):
        wrong[place] ^= 0x55
    good(handler, bytes(wrong))


def login_page(handler, body):
    good(handler, b"<html>Please log in</html>")


def empty(handler, body):
    good(handler, b"")


def not_found(handler, body):
    handler.begin(404, {"Content-Length": 0})


def broken(handler, body):
    handler.begin(503, {"Content-Length": 0})


def circle(handler, body):
    handler.begin(302, {"Location": handler.path, "Content-Length": 0})


def moved(handler, body):
    handler.begin(301, {"Location": f"/elsewhere{handler.path}", "Content-Length": 0})


def stalled(handler, body):
    handler.begin(200, {"Content-Length": len(body)})
    handler.wfile.write(body[:10])
    handler.wfile.flush()
    handler.server.released.wait(10)


def dripping(handler, body):
    handler.begin(200, {"Content-Length": len(body)})
    for place in range(len(body)):
        handler.wfile.write(body[place : place + 1])
        handler.wfile.flush()
        if handler.server.released.wait(0.05):
            return


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.close_connection = True
        name = self.path.rsplit("/", 1)[-1]
        self.server.asked.append(self.path)
        plan = self.server.plans.get(name, [not_found])
        act = plan.pop(0) if len(plan) > 1 else plan[0]
        if self.path.startswith("/elsewhere"):
            act = good
        with suppress(BrokenPipeError, ConnectionResetError):
            act(self, self.server.bodies.get(name, b""))

    def begin(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(fetch, "PAUSE", 0.01)
    monkeypatch.setattr(fetch, "TIMEOUT", 0.4)
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.plans, made.bodies, made.asked, made.released = {}, {}, [], threading.Event()
    made.address = f"http://127.0.0.1:{made.server_port}"
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.released.set()
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.fixture
def publish(server, monkeypatch):
    """Makes the server publish a small version of a set; gives the frame and the entry."""

    def at(name, plan, only=None):
        entry = shrunk(ENTRIES[name], address=server.address)
        sources = [
            tuple(
                replace(p, downloads=tuple(d for d in p.downloads if only in (None, d.file)))
                for p in source
            )
            for source in entry.sources
            if source[0].downloads
        ]
        entry = replace(entry, sources=tuple(s for s in sources if s[0].downloads))
        monkeypatch.setattr(loading, "ENTRIES", {name: entry})
        frame = sample_frame(entry)
        for source in entry.sources:
            pieces = np.array_split(np.arange(len(frame)), len(source))
            files = {
                part.name: original(frame.iloc[rows], part)
                for part, rows in zip(source, pieces, strict=True)
            }
            for part in source:
                for d in part.downloads:
                    own = files if d.file.startswith("census+") else {part.name: files[part.name]}
                    server.bodies[d.file] = published(d.file, own)
                    server.plans[d.file] = list(plan)
        return frame, entry

    return at


def files_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


PASSING = [dropped, dropped_at_once, cut, cut_chunks, corrupt, login_page, empty, broken, stalled]


@pytest.mark.parametrize("name", ENTRIES)
def test_every_set_is_downloaded_once(name, publish, server, tmp_path, capfd):
    frame, entry = publish(name, [good])
    folder = tmp_path / "new" / "folder"
    data = load(name, data_home=folder)
    assert len(data.X) == len(frame)
    asked = len(server.asked)
    assert asked == 1  # census comes in one archive
    assert files_in(folder) == [entry.sources[0][0].downloads[0].file]
    again = load(name, data_home=folder)
    pd.testing.assert_frame_equal(again.X, data.X)
    np.testing.assert_array_equal(again.y, data.y)
    assert len(server.asked) == asked
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("name", ["letter", "ijcnn1", "kddcup04_bio"])
def test_a_fault_that_passes_is_tried_again(name, fault, publish, server, tmp_path):
    frame, entry = publish(name, [fault, good])
    data = load(name, data_home=tmp_path)
    np.testing.assert_array_equal(data.X.to_numpy(), frame[list(entry.features)].to_numpy())
    assert len(server.asked) == 2
    assert files_in(tmp_path) == [entry.sources[0][0].downloads[0].file]


@pytest.mark.parametrize("fault", [*PASSING, not_found, circle, dripping])
def test_a_fault_that_stays_leaves_nothing_behind(fault, publish, server, tmp_path):
    publish("letter", [fault])
    start = time.monotonic()
    with pytest.raises(FileNotFoundError) as info:
        load("letter", data_home=tmp_path)
    assert time.monotonic() - start < 20
    assert files_in(tmp_path) == []
    message = str(info.value)
    assert "could not be downloaded" in message
    for file in ("letter+recognition.zip", "letter-recognition.data"):  # both addresses were tried
        assert f"{server.address}/{file}: " in message
        assert f"{tmp_path / file}  from {server.address}/{file}" in message
    assert ".part" not in message
    tries = 2 if fault is not_found else 2 * fetch.ATTEMPTS
    if fault is not circle:
        assert len(server.asked) == tries
    server.plans.update({file: [good] for file in server.plans})
    load("letter", data_home=tmp_path)


def test_redirects_are_followed(publish, server, tmp_path):
    publish("ijcnn1", [moved])
    load("ijcnn1", data_home=tmp_path)
    assert server.asked == ["/ijcnn1.bz2", "/elsewhere/ijcnn1.bz2"]


def test_a_body_of_no_stated_length_will_do(publish, tmp_path):
    publish("ijcnn1", [without_length])
    load("ijcnn1", data_home=tmp_path)


def test_the_next_address_is_tried(publish, server, tmp_path):
    publish("letter", [good])
    server.plans["letter+recognition.zip"] = [not_found]
    load("letter", data_home=tmp_path)
    assert files_in(tmp_path) == ["letter-recognition.data"]


def test_the_next_source_is_tried(publish, server, tmp_path):
    publish("cal_housing", [good])
    server.plans["cal_housing.tgz"] = [broken]
    load("cal_housing", data_home=tmp_path)
    assert files_in(tmp_path) == ["cadata"]


def test_parts_may_come_one_by_one(publish, server, tmp_path):
    frame, _ = publish("census", [good])
    server.plans["census+income+kdd.zip"] = [not_found]
    server.plans["census-income.test.gz"] = [not_found]
    with pytest.raises(FileNotFoundError, match=r"census-income\.test\.gz: HTTP Error 404"):
        load("census", data_home=tmp_path)
    assert files_in(tmp_path) == ["census-income.data.gz"]  # whole, and kept
    server.plans["census-income.test.gz"] = [dropped, good]
    data = load("census", data_home=tmp_path)
    assert data.X["age"].tolist() == frame["age"].tolist()
    assert server.asked.count("/census-income.data.gz") == 1


def test_sha256(publish, server, tmp_path):
    """Content that reads well but is not what was published is refused."""
    _, entry = publish("cal_housing", [good], only="cal_housing.tgz")
    part = entry.sources[0][0]
    right = hashlib.sha256(server.bodies["cal_housing.tgz"]).hexdigest()
    for sha256, fine in ((right, True), ("0" * 64, False)):
        download = replace(part.downloads[0], sha256=sha256)
        source = (replace(part, downloads=(download,)),)
        loading.ENTRIES["cal_housing"] = replace(entry, sources=(source,))
        if fine:
            load("cal_housing", data_home=tmp_path / "fine")
            continue
        with pytest.raises(FileNotFoundError, match=f"sha256 is {right}, not 000"):
            load("cal_housing", data_home=tmp_path)
    assert files_in(tmp_path) == ["fine"]


@pytest.mark.parametrize("fault", [dropped, cut_chunks])
def test_a_body_shorter_than_stated_is_refused_whatever_it_holds(fault, server, tmp_path):
    server.bodies["words.txt"], server.plans["words.txt"] = b"any words will do", [fault]
    with pytest.raises(ConnectionError):
        fetch.download(f"{server.address}/words.txt", tmp_path / "words.txt", lambda path: None)
    assert files_in(tmp_path) == []


def test_no_network(publish, server, tmp_path, monkeypatch):
    publish("ijcnn1", [good])

    def unreachable(*args, **kwargs):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    with pytest.raises(FileNotFoundError, match="Name or service not known") as info:
        load("ijcnn1", data_home=tmp_path)
    assert str(tmp_path / "ijcnn1.bz2") in str(info.value)
    assert files_in(tmp_path) == []


def test_download_false_asks_nobody(publish, server, tmp_path):
    publish("ijcnn1", [good])
    with pytest.raises(FileNotFoundError, match="put it there"):
        load("ijcnn1", data_home=tmp_path, download=False)
    assert server.asked == []
    assert files_in(tmp_path) == []


def test_what_a_killed_download_leaves_is_never_read(publish, server, tmp_path):
    publish("ijcnn1", [good])
    (tmp_path / ".ijcnn1.bz2.0123.part").write_bytes(server.bodies["ijcnn1.bz2"][:20])
    load("ijcnn1", data_home=tmp_path)
    assert len(server.asked) == 1


def test_an_interrupt_leaves_nothing(publish, tmp_path, monkeypatch):
    publish("ijcnn1", [good])

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(loading, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load("ijcnn1", data_home=tmp_path)
    assert files_in(tmp_path) == []


def test_a_bad_file_of_the_user_is_not_replaced(publish, server, tmp_path):
    publish("ijcnn1", [good])
    (tmp_path / "ijcnn1.bz2").write_bytes(b"mine")
    with pytest.raises(ValueError, match="Delete it to have it downloaded again"):
        load("ijcnn1", data_home=tmp_path)
    assert (tmp_path / "ijcnn1.bz2").read_bytes() == b"mine"
    assert server.asked == []


def test_a_folder_that_cannot_be_made_is_no_reason_to_try_again(publish, server, tmp_path):
    publish("ijcnn1", [good])
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileNotFoundError, match="file"):
        load("ijcnn1", data_home=tmp_path / "file" / "folder")
    assert server.asked == []


def test_two_at_once(publish, tmp_path):
    publish("ijcnn1", [good])
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(load("ijcnn1", data_home=tmp_path)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert files_in(tmp_path) == ["ijcnn1.bz2"]


# OpenML, through scikit-learn


@pytest.fixture
def openml(monkeypatch):
    entry = shrunk(ENTRIES["comp-activ-harder"])
    source = next(s for s in entry.sources if s[0].openml)
    tables = entry.sources[:2]
    monkeypatch.setattr(loading, "ENTRIES", {entry.name: replace(entry, sources=(*tables, source))})
    frame = sample_frame(entry)
    asked = []

    def fetch_openml(**options):
        asked.append(options)
        return types.SimpleNamespace(
            data=frame[list(entry.features)], target=frame["target"].rename("usr")
        )

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    return frame, asked


def test_openml_is_asked_once(openml, tmp_path):
    frame, asked = openml
    data = load("comp-activ-harder", data_home=tmp_path)
    assert [options["data_id"] for options in asked] == [227]
    assert files_in(tmp_path) == ["comp_activ_harder.csv"]
    again = load("comp-activ-harder", data_home=tmp_path)
    assert len(asked) == 1
    pd.testing.assert_frame_equal(again.X, data.X)
    np.testing.assert_allclose(again.y, frame["target"], rtol=1e-15)


@pytest.mark.parametrize("error", [urllib.error.URLError("no route"), ValueError("md5 differs")])
def test_openml_out_of_reach(openml, error, tmp_path, monkeypatch):
    def failing(**options):
        raise error

    monkeypatch.setattr("sklearn.datasets.fetch_openml", failing)
    with pytest.raises(FileNotFoundError, match=r"OpenML 227: .*(no route|md5 differs)"):
        load("comp-activ-harder", data_home=tmp_path)
    assert files_in(tmp_path) == []


# the bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_on_a_terminal(publish, server, tmp_path, monkeypatch):
    pytest.importorskip("rich", reason="the bar needs rich")
    publish("ijcnn1", [good])
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    load("ijcnn1", data_home=tmp_path)
    assert "ijcnn1.bz2" in terminal.getvalue()


def test_no_rich_no_bar(publish, tmp_path, monkeypatch):
    publish("ijcnn1", [good])
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    load("ijcnn1", data_home=tmp_path)
    assert terminal.getvalue() == ""


def test_a_zip_in_a_zip_is_looked_into():
    from ellzero.data.io.packed import unpacked

    body = zipped({"deep/inner.zip": zipped({"data.csv": b"1,2"})})
    found = {name: stream.read() for name, stream in unpacked(io.BytesIO(body), "outer.zip")}
    assert found["data.csv"] == b"1,2"
