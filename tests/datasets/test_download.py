"""Downloads, from a server on this machine: kept whole and checked, or not at all."""

import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from manykernels.datasets import fetching
from manykernels.datasets.fetching import VARIABLE, File, data_folder, found_or_downloaded
from tests.problems import slow

BODY = b"1,2,3\n" * 50_000
LENGTH = len(BODY)
SUM = hashlib.sha256(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Answers by the path of the request."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path == "/gone":
            self.send_error(404)
        elif self.path.startswith("/to-"):
            self.send_response(302)
            self.send_header("Location", self.server.targets[self.path])
            self.end_headers()
        elif self.path == "/silent":
            self.server.stop.wait(10)
        elif self.path == "/nonsense":
            self.wfile.write(b"this is no HTTP\r\n\r\n")
        else:
            self.send_response(200)
            if self.path != "/no-length":
                self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            if self.path in ("/cut", "/stalls"):
                self.wfile.write(BODY[:1000])
                if self.path == "/stalls":
                    self.server.stop.wait(10)
                return
            self.wfile.write(BODY)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # clients that hang up are what is tested
    server.daemon_threads = True
    server.asked, server.stop, server.targets = [], threading.Event(), {}
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.stop.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def get(server, tmp_path):
    def get(path, sha256=SUM, n_bytes=LENGTH, timeout=5.0, **options):
        url = path if ":" in path else server.address + path
        file = File("some/rows.csv", url, sha256, n_bytes)
        options = {"download_if_missing": True, **options}
        return found_or_downloaded(file, tmp_path, timeout=timeout, **options)

    return get


def left_behind(folder):
    return [path for path in folder.rglob("*") if not path.is_dir()]


def test_a_file_is_downloaded_once(get, server, tmp_path):
    for _ in range(2):
        assert get("/rows") == tmp_path / "some" / "rows.csv"
        assert get("/rows").read_bytes() == BODY
    assert server.asked == ["/rows"]
    assert left_behind(tmp_path) == [tmp_path / "some" / "rows.csv"]


def test_no_length_announced(get):
    assert get("/no-length").read_bytes() == BODY


def test_redirections_are_followed(get, server):
    server.targets["/to-rows"] = "/rows"
    assert get("/to-rows").read_bytes() == BODY
    assert server.asked == ["/to-rows", "/rows"]


def test_what_is_there_is_used_as_it_is(get, server, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some/rows.csv").write_bytes(b"mine")
    assert get("/rows").read_bytes() == b"mine"
    assert get("/rows", download_if_missing=False).read_bytes() == b"mine"
    assert server.asked == []


def test_nothing_is_downloaded_unless_it_may_be(get, server, tmp_path):
    with pytest.raises(OSError, match="download_if_missing is False"):
        get("/rows", download_if_missing=False)
    assert server.asked == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/gone", "404 Not Found"),
        ("/cut", f"the connection broke after 1000 of {len(BODY)} bytes"),
        ("/nonsense", "this is no HTTP"),
    ],
)
def test_failures_name_the_file_the_address_and_the_folder(get, server, tmp_path, path, reason):
    with pytest.raises(OSError, match=reason) as error:
        get(path)
    message = str(error.value)
    assert message.startswith(f"rows.csv is not in {tmp_path / 'some'} and was not downloaded")
    assert server.address + path in message
    assert f"Save it as {tmp_path / 'some' / 'rows.csv'}" in message
    assert "set data_home or MANYKERNELS_DATA to a folder that has some/rows.csv." in message
    assert left_behind(tmp_path) == []


def test_offline(get, tmp_path):
    with socket.socket() as unused:  # bound, so that nobody else gets it, and not listening
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/rows"
        with pytest.raises(OSError, match="refused") as error:
            get(url)
    assert url in str(error.value)
    assert "\n" not in str(error.value)
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("path", ["/silent", *slow("/stalls")])
def test_a_slow_server_is_not_waited_for(get, path, tmp_path):
    with pytest.raises(OSError, match=r"was not downloaded from .*timed out"):
        get(path, timeout=0.1)
    assert left_behind(tmp_path) == []


def test_a_wrong_checksum(get, tmp_path):
    wrong = "0" * 64
    with pytest.raises(OSError, match="It was not kept") as error:
        get("/rows", sha256=wrong)
    message = str(error.value)
    assert f"SHA-256 is {SUM} and should be {wrong}" in message
    assert f"save it as {tmp_path / 'some' / 'rows.csv'}: existing files" in message
    assert left_behind(tmp_path) == []


def test_more_than_the_file_has_is_not_read(get, tmp_path):
    with pytest.raises(OSError, match="more than the 100000 bytes"):
        get("/rows", n_bytes=100_000)
    assert left_behind(tmp_path) == []


def test_an_endless_file_of_unknown_size(get, tmp_path, monkeypatch):
    monkeypatch.setattr(fetching, "_MOST", 1000)
    with pytest.raises(OSError, match="more than the 1000 bytes"):
        get("/no-length", sha256=None, n_bytes=None)
    assert left_behind(tmp_path) == []


def test_a_file_without_a_checksum_is_said_to_be_unchecked(get):
    with pytest.warns(UserWarning, match="without a check") as warned:
        path = get("/rows", sha256=None, n_bytes=None)
    assert path.read_bytes() == BODY
    assert SUM in str(warned[0].message)
    get("/rows", sha256=None, n_bytes=None)  # is there now: nothing to warn of


def test_an_interruption_leaves_nothing(get, tmp_path, monkeypatch):
    class Interrupted:
        def __init__(self):
            self.n_bytes = 0

        def update(self, chunk):
            self.n_bytes += len(chunk)
            if self.n_bytes > 100_000:
                raise KeyboardInterrupt

    monkeypatch.setattr(fetching.hashlib, "sha256", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        get("/rows")
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("scheme", ["file", "ftp", "data"])
def test_other_schemes_are_refused(get, scheme, server, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(BODY)
    url = {"file": secret.as_uri(), "ftp": "ftp://127.0.0.1/rows", "data": "data:,1"}[scheme]
    with pytest.raises(ValueError, match="Only http and https"):
        get(url)
    server.targets["/to-other"] = url
    with pytest.raises(OSError, match="was not downloaded"):
        get("/to-other")
    assert left_behind(tmp_path) == [secret]


def test_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "set"))
    assert data_folder(tmp_path / "given") == tmp_path / "given"
    assert data_folder("~/given") == tmp_path / "given"
    assert data_folder(None) == tmp_path / "set"
    for unset in (lambda: monkeypatch.setenv(VARIABLE, ""), lambda: monkeypatch.delenv(VARIABLE)):
        unset()
        assert data_folder(None) == tmp_path / "manykernels_data"
    assert isinstance(data_folder(None), Path)
