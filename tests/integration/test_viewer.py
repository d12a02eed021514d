"""The viewer on a real campaign of an offline agent, by HTTP and in a real browser."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.attempts import Lab
from tests.support.browser import Browser
from tests.support.buckets import bucket
from tests.support.ledgers import lifelike, lifelike_plan, trials, write, write_plan, write_trial
from tests.support.real_campaign import campaign_file, ran, trialfleet
from tests.support.viewer import Viewing, viewing
from tests.support.waiting import in_background, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
BROWSER = pytest.mark.needs("chromium", "chromedriver")

NAME = "looked-at"
EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
STEPS = [
    {"turn": 1, "kind": "run", "tool": "Bash", "path": None, "detail": EVIL},
    {"turn": 2, "kind": "edit", "tool": "Edit", "path": "shop/pricing/rules.py", "detail": None},
]
# Repairs where a context file lies, and says hostile things wherever it has a say.
AGENT = r"""
cat <<'END'
STEPS
END
printf 'x = "<script>document.title=1</script>\342\200\256gnp.exe\033[31m"\n' > 'shop/<b>x.py'
if [ -e CLAUDE.md ]; then sed -i 's|discount / 0|discount / 100|' shop/pricing/rules.py; fi
"""
TOO_WIDE = "return document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A finished campaign: every trial with context passes, every one without fails."""
    root = tmp_path_factory.mktemp("viewer")
    root.chmod(0o755)
    lab = Lab(root)
    argv = ["/bin/sh", "-c", AGENT.replace("STEPS", "\n".join(map(json.dumps, STEPS)))]
    agent = {"kind": "command", "timeout_s": 60, "options": {"argv": argv}}
    file = campaign_file(lab, name=NAME, agent=agent, store="runs", conditions=("none", "flat_llm"), reps=2)
    trialfleet("run", "--no-ray", str(file), lab=lab)
    return lab


@pytest.fixture(scope="module")
def viewer(lab: Lab) -> Iterator[Viewing]:
    with viewing(f"{NAME}.yaml", cwd=lab.root) as running:
        yield running


@pytest.fixture(scope="module")
def folder(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pages = tmp_path_factory.mktemp("folder") / "pages"
    said = trialfleet("view", f"{NAME}.yaml", "--bundle", str(pages), lab=lab)
    assert str(pages / "index.html") in said
    return pages


def entered(window: Browser, viewer: Viewing) -> None:
    """Past the token, at the first screen with its answer."""
    window.visit(viewer.address)
    window.wait_for("document.querySelector('.answer')")
    window.wait_for("!document.querySelector('.answer').textContent.includes('being computed')")


# --- by HTTP ----------------------------------------------------------------------------------------


def test_nobody_gets_a_word_without_the_token(viewer: Viewing) -> None:
    wrong = {"Cookie": viewer.cookie + "x"}
    for path, headers in (
        ("/", {"X": "y"}),
        ("/", wrong),
        ("/?token=wrong", {"X": "y"}),
        ("/assets/style.css", wrong),
        ("/", {"Cookie": viewer.cookie, "Host": "evil.example"}),
        ("/live.json", {"Cookie": viewer.cookie, "Origin": "http://evil.example"}),
    ):
        status, answered, body = viewer.get(path, headers)
        assert (status, body) == (403, b""), (path, headers)
        assert "content-security-policy" not in answered
    assert viewer.get("/live.json")[0] == 200


def test_what_a_page_may_do_is_said_with_it(viewer: Viewing) -> None:
    _, headers, body = viewer.get("/")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert viewer.address.partition("token=")[2].encode() not in body
    entering = viewer.get("/trials?token=" + viewer.address.partition("token=")[2], {"X": "y"})
    assert "HttpOnly" in entering[1]["set-cookie"]
    assert "samesite=strict" in entering[1]["set-cookie"].lower()
    assert b'url=/trials"' in entering[2]


def test_files_are_text_whatever_they_say(viewer: Viewing) -> None:
    trial = viewer.get("/trials.csv")[2].decode().splitlines()[1].split(",")[0].strip('"')
    status, headers, body = viewer.get(f"/trial/{trial}/1/file/patch.diff")
    assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert headers["x-content-type-options"] == "nosniff"
    assert b"<script>" in body
    for path in ("../../end.json", "/etc/passwd", "nothing"):
        assert viewer.get(f"/trial/{trial}/1/file/{path}")[0] == 404


def test_no_request_ends_the_server(viewer: Viewing) -> None:
    host, port = viewer.origin.removeprefix("http://").split(":")
    for raw in (
        b"\0\0\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /" + b"a" * 99_000,
    ):
        with socket.create_connection((host, int(port)), timeout=10) as line:
            line.sendall(raw)
    for path in (
        "/pair/x/y",
        "/trial/" + "a" * 26,
        "/trial/%00",
        "/trials?start=9999999999",
        "/nothing",
        "/trial/x/0",
    ):
        assert viewer.get(path)[0] in (200, 404)
    assert viewer.get("/")[0] == 200


def test_two_people_at_once_see_what_one_sees(viewer: Viewing) -> None:
    trial = viewer.get("/trials.csv")[2].decode().splitlines()[1].split(",")[0].strip('"')
    wait_until(lambda: b"being computed" not in viewer.get("/")[2], "the answer", within_s=120)
    paths = ["/", "/trials", "/trials.csv", f"/trial/{trial}", f"/trial/{trial}/1/file/patch.diff"]
    alone = {path: viewer.get(path)[::2] for path in paths}
    assert {status for status, _ in alone.values()} == {200}
    asked = paths * 8
    with ThreadPoolExecutor(16) as people:
        answered = list(people.map(lambda path: viewer.get(path)[::2], asked))
    assert answered == [alone[path] for path in asked]


def test_a_port_that_is_taken_is_named(viewer: Viewing, lab: Lab) -> None:
    port = viewer.origin.rpartition(":")[2]
    refused = ran("view", f"{NAME}.yaml", "--no-open", "--port", port, cwd=lab.root, expect=2)
    assert f"port {port} cannot be used: Address already in use" in refused.stderr


def test_a_store_that_goes_away_and_comes_back(tmp_path: Path) -> None:
    write(tmp_path / "runs", lifelike_plan(reps=2), lifelike())
    with viewing(str(tmp_path / "runs" / "preamble-vs-pull")) as running:
        assert running.get("/")[0] == 200
        kept = tmp_path / "runs/preamble-vs-pull/tables/answer.json"
        wait_until(kept.exists)  # later it would be written into a new folder of the old name
        (tmp_path / "runs").rename(tmp_path / "away")
        wait_until(lambda: b"There is no campaign preamble-vs-pull" in running.get("/")[2], every_s=0.2)
        (tmp_path / "away").rename(tmp_path / "runs")
        wait_until(lambda: b"Pass rates" in running.get("/")[2], every_s=0.2)


@pytest.mark.needs("s3")
def test_a_store_without_permission_is_named_with_the_way_out() -> None:
    name = f"viewer-{secrets.token_hex(6)}"
    env = {**os.environ, "AWS_ENDPOINT_URL": os.environ["S3_ENDPOINT"], "AWS_SECRET_ACCESS_KEY": "not-shown"}
    with bucket(name), viewing(f"s3://{name}/runs/demo", env=env) as running:
        for path in ("/", "/trials", "/live.json", f"/trial/{'a' * 26}"):
            status, _, body = running.get(path)
            assert (status, b"not-shown" in body) == (500, False), path
            assert os.environ["AWS_ACCESS_KEY_ID"].encode() in body
            assert b"fix: correct $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY or the policy" in body
        assert running.get("/nothing")[0] == 404


# --- in a browser -----------------------------------------------------------------------------------


@BROWSER
def test_from_the_answer_to_a_pair_by_one_click(window: Browser, viewer: Viewing) -> None:
    entered(window, viewer)
    assert window.run("return location.href") == f"{viewer.origin}/"
    assert "Mean pass rates" in window.run("return document.querySelector('.answer').textContent")
    window.run("document.querySelector('a.rep').click()")
    window.wait_for("location.pathname.startsWith('/pair/')")
    window.wait_for("document.querySelectorAll('.steps td').length >= 4")
    tests = window.run("return [...document.querySelectorAll('.tests tbody tr')].map(one => one.innerText)")
    assert re.search(r"test_discount.*shows the bug\s+passed\s+failed", tests[0], re.S)
    assert window.run("return document.querySelectorAll('.patch .added').length") >= 1
    window.run("history.back()")
    window.wait_for("location.pathname === '/'")
    window.run("document.querySelector('td.cell a').click()")
    window.wait_for("location.pathname === '/trials'")
    assert window.run("return document.querySelectorAll('tbody tr').length") == 2
    window.run("document.querySelector('tbody a').click()")
    window.wait_for("location.pathname.startsWith('/trial/')")
    assert window.console() == []
    assert all(url.startswith(f"{viewer.origin}/") for url in window.requested() if not url.startswith("data:"))


@BROWSER
def test_steps_are_searched_and_folded_by_kind(window: Browser, viewer: Viewing) -> None:
    trial = viewer.get("/trials.csv?condition=flat_llm")[2].decode().splitlines()[1].split(",")[0].strip('"')
    entered(window, viewer)
    window.visit(f"{viewer.origin}/trial/{trial}")
    window.wait_for("!document.getElementById('find').hidden")
    visible = "[...document.querySelectorAll('.steps .step:not([hidden])')].map(one => one.dataset.kind).join()"
    every = "run,edit,change,change"  # the last two are what the edit changed in the workspace
    assert window.run(f"return {visible}") == every
    window.press("/", 191)
    window.wait_for("document.activeElement.id === 'find-text'")
    window.tell("Input.insertText", {"text": "ONERROR"})
    window.wait_for(f"{visible} === 'run'")
    assert window.run("return document.getElementById('find-count').textContent") == "1 step in 1 of 2 turns"
    window.press("Escape", 27)
    window.wait_for(f"{visible} === '{every}'")
    window.run("document.querySelector('#find input[value=run]').click()")
    window.wait_for(f"{visible} === 'edit,change,change'")
    assert window.run("return document.querySelectorAll('.patch .nu').length") >= 1
    window.visit(f"{viewer.origin}/trial/{trial}#turn-2")
    assert window.run("return document.querySelector(':target').id") == "turn-2"
    assert window.console() == []


@BROWSER
def test_hostile_content_is_shown_and_does_nothing(window: Browser, viewer: Viewing) -> None:
    entered(window, viewer)
    window.run("document.querySelector('a.rep').click()")
    window.wait_for("location.pathname.startsWith('/pair/')")
    window.wait_for("document.querySelectorAll('.steps td').length >= 4")
    said = window.run("return document.querySelector('.steps').textContent")
    assert EVIL in said
    patch = window.run("return document.querySelector('.patch').textContent")
    assert "<script>document.title=1</script>⟨U+202E⟩gnp.exe␛[31m" in patch
    assert window.run("return document.querySelectorAll('main img, main script').length") == 0
    assert "owned" not in window.run("return document.title")
    assert window.console() == []


@BROWSER
def test_the_check_of_hostile_content_can_fail(window: Browser, viewer: Viewing, tmp_path: Path) -> None:
    """The same words, unescaped and without a policy, do act in this browser; the policy alone stops them too."""
    for policy, owned in (("", True), ("default-src 'none'; script-src 'self'", False)):
        head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' if policy else ""
        (tmp_path / "open.html").write_text(f"<!doctype html><title>calm</title>{head}<body>{EVIL}")
        window.look_at(tmp_path / "open.html")
        assert (window.run("return document.title") == "owned") is owned
    window.console()


@BROWSER
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
def test_silent_and_within_its_window(window: Browser, viewer: Viewing, width: int, dark: bool) -> None:
    entered(window, viewer)
    pair = window.run("return document.querySelector('a.rep').getAttribute('href')")
    for path in ("/", "/trials", pair, pair.replace("pair", "trial").rpartition("/")[0], "/nothing"):
        window.visit(viewer.origin + path, width=width, dark=dark)
        assert window.run(TOO_WIDE) <= 0, path
        assert [one for one in window.console() if "404" not in one] == []


@BROWSER
def test_without_a_script_every_link_works(window: Browser, viewer: Viewing) -> None:
    window.tell("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        window.visit(f"{viewer.origin}/trials?condition=none&sort=turns&order=down")
        assert window.run("return document.querySelectorAll('tbody tr').length") == 2
        assert window.run("return document.getElementById('theme').hidden") is True
    finally:
        window.tell("Emulation.setScriptExecutionDisabled", {"value": False})


@BROWSER
def test_a_campaign_is_waited_for_and_watched(window: Browser, tmp_path: Path) -> None:
    """Two windows look on: one that waits for the campaign, and one that sees newer results announced."""
    frozen, fate = lifelike_plan(reps=2), lifelike()
    root = tmp_path / "runs"
    with viewing("preamble-vs-pull", "--store", str(root)) as running:
        window.visit(running.address)
        window.wait_for("document.querySelector('h1') && document.querySelector('h1').textContent === 'Waiting'")
        store = write_plan(root, frozen)
        window.wait_for("document.getElementById('counts')")
        for trial in trials(frozen):
            if trial.block == 0:
                write_trial(store, frozen, trial, fate(trial))
        window.wait_for("document.getElementById('counts').textContent === '30 of 60 trials over'")
        window.wait_for("!document.getElementById('newer').hidden")
        looks = [*(root / "preamble-vs-pull" / "looks").iterdir()]
        assert 1 <= len(looks) <= 2, "the verdicts of the newest trials are seen; counts alone are no look"
        window.run("document.querySelector('#newer a').click()")
        window.wait_for("document.querySelector('.chip.interim')")
        window.wait_for("document.querySelector('td.cell a') && location.pathname === '/'")
        assert window.console() == []


@BROWSER
def test_a_folder_opens_without_a_server(window: Browser, folder: Path) -> None:
    window.look_at(folder / "index.html", width=360)
    assert "Mean pass rates" in window.run("return document.querySelector('.answer').textContent")
    assert window.run(TOO_WIDE) <= 0
    window.run("document.querySelector('td.cell a').click()")
    window.wait_for("location.pathname.endsWith('/trials.html') && !document.getElementById('kept').hidden")
    assert window.run("return document.querySelectorAll('tbody tr:not([hidden])').length") == 2
    window.run("document.querySelector('nav a[href=\"index.html\"]').click()")
    window.wait_for("document.querySelector('a.rep')")
    window.run("document.querySelector('a.rep').click()")
    window.wait_for("document.querySelectorAll('.steps td').length >= 4")
    assert window.run("return getComputedStyle(document.querySelector('.sides')).display") == "grid"
    assert window.console() == []
    assert all(url.startswith("file://") for url in window.requested())


@BROWSER
def test_a_folder_is_served_as_plain_files(window: Browser, folder: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder)) as server:
        in_background(server.serve_forever)
        origin = f"http://127.0.0.1:{server.server_port}"
        window.visit(f"{origin}/index.html")
        window.run("document.querySelector('td.cell a').click()")
        window.wait_for("location.pathname === '/trials.html' && !document.getElementById('kept').hidden")
        assert window.run("return document.querySelectorAll('tbody tr:not([hidden])').length") == 2
        assert window.console() == []
        assert all(url.startswith(f"{origin}/") for url in window.requested())
        server.shutdown()
