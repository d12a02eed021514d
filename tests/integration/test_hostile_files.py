"""What task files, campaign files and configuration of a stranger's repository start or choose on this machine.
Each has a control: without the defence, or for the user's own file, it does."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.integration.test_tool_environment_build import reference
from tests.support.git_repositories import Made
from tests.support.real_campaign import ran
from tests.support.waiting import wait_until
from trialfleet_agents.program import find_program, version_of
from trialfleet_controller.backends.local.processes import create_launcher
from trialfleet_controller.hosting.private_ray import PrivateRay
from trialfleet_controller.planning.repository_programs import refuse_repository_program
from trialfleet_ledger.child_program import python_module
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.interpreters import uv_program
from trialfleet_ledger.records.agent import AgentSpec
from trialfleet_repository.cache import Cache
from trialfleet_repository.environments import package_index
from trialfleet_repository.environments.environment import build
from trialfleet_repository.environments.lock_requirements import read_requirements
from trialfleet_repository.environments.tool_environment import find_tool
from trialfleet_repository.languages.ecmascript.registry import find_npm_registry
from trialfleet_repository.languages.go.registry import find_go_proxy
from trialfleet_repository.trees import TreeEntry, pack

CHECKOUT = Path(__file__).parents[2]
PARTS = ("runner_image", "controller", "tasks", "analysis")
THEIRS, OURS = "https://theirs.invalid", "https://ours.invalid"
CONFIGURATION = {  # of a project, in the form of each tool
    "uv.toml": 'index-url = "{0}/simple"\n',
    "pyproject.toml": '[tool.uv]\nindex-url = "{0}/simple"\n',
    "pip.conf": "[global]\nindex-url = {0}/simple\n",
    ".npmrc": "registry={0}/npm/\n",
    ".yarnrc.yml": 'npmRegistryServer: "{0}/npm"\n',
    "go.env": "GOPROXY={0}/go\n",
    ".cargo/config.toml": '[source.crates-io]\nreplace-with = "x"\n[source.x]\nregistry = "sparse+{0}/"\n',
    "settings.xml": "<settings><mirrors><mirror><url>{0}</url></mirror></mirrors></settings>\n",
}


@pytest.fixture
def current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with such files; HOME is an empty folder, and no variable names an index."""
    folder = tmp_path / "theirs"
    for name, text in CONFIGURATION.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.format(THEIRS))
    (tmp_path / "home").mkdir()
    for name in list(os.environ):
        if name.lower().startswith(("npm_config_", "uv_", "pip_", "go", "xdg_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RUSTUP_HOME", os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What modules make that lie in the current folder under names that our processes import."""
    folder, mark = tmp_path / "theirs", tmp_path / "mark"
    folder.mkdir()
    for name in (
        "trialfleet_analysis",
        "trialfleet_controller",
        "trialfleet_runner",
        "trialfleet_ledger",
        "typing",
    ):
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise SystemExit(9)\n")
    monkeypatch.chdir(folder)
    return mark


def python_index() -> str:
    return package_index._uv_default.__wrapped__()


def write_home(name: str, text: str) -> None:
    path = Path(os.environ["HOME"], name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(OURS), encoding="utf-8")


def test_the_current_folder_does_not_choose_the_index_of_uv(current_folder: Path) -> None:
    words = (uv_program(), "pip", "compile", "-q", "--no-header", "--emit-index-url", "--offline", "-")
    plain = subprocess.run(words, input="", capture_output=True, text=True, check=True, cwd=current_folder)
    assert THEIRS in plain.stdout, "the control: uv itself reads it"
    assert THEIRS not in python_index()
    write_home(".config/uv/uv.toml", CONFIGURATION["uv.toml"])
    assert python_index() == f"{OURS}/simple", "the user's counts"


@pytest.mark.needs("npm")
def test_the_current_folder_does_not_choose_the_registry_of_npm(current_folder: Path) -> None:
    words = ("npm", "config", "get", "registry")
    (current_folder / "package.json").write_text("{}")
    plain = subprocess.run(words, capture_output=True, text=True, check=True, cwd=current_folder)
    assert THEIRS in plain.stdout, "the control: npm itself reads it"
    assert not any(THEIRS in url for url in find_npm_registry().values())
    write_home(".npmrc", CONFIGURATION[".npmrc"])
    assert find_npm_registry()["npm_config_registry"] == f"{OURS}/npm/"


@pytest.mark.needs("go")
def test_the_users_proxy_of_go_is_found(current_folder: Path) -> None:
    assert THEIRS not in str(find_go_proxy())
    write_home(".config/go/env", "GOPROXY={0}/go,direct\nGOPRIVATE=ours.invalid\n")
    assert find_go_proxy()["GOPROXY"] == f"{OURS}/go,direct"
    assert find_go_proxy()["GOPRIVATE"] == "ours.invalid"


@pytest.mark.needs("bwrap", "npm")
def test_a_repository_does_not_choose_the_registry_of_a_fetch(current_folder: Path, tmp_path: Path) -> None:
    write_home(".npmrc", f"//ours.invalid/:_authToken=secret\n{CONFIGURATION['.npmrc']}")
    tree = pack(
        {".npmrc": TreeEntry(CONFIGURATION[".npmrc"].format(THEIRS).encode()), "package.json": TreeEntry(b"{}")}
    )
    ask = "npm config get registry > {environment}/registry; env > {environment}/variables;"
    ask += " unset npm_config_registry;"
    tools = {name: find_tool(name)[1] for name in ("node", "npm")}
    built = build(reference(f"{ask} npm config get registry > {{environment}}/control", tools=tools), tree,
                  cache=Cache(tmp_path / "environments"))  # fmt: skip
    assert (built / "registry").read_text().strip() == f"{OURS}/npm/"
    assert THEIRS in (built / "control").read_text()
    assert "secret" not in (built / "variables").read_text()


CARGO = """
[source.crates-io]
replace-with = "ours"
[source.ours]
registry = "sparse+{0}/"
[registries.team]
index = "{0}"
token = "secret"
"""
MAVEN = """<settings><servers><server><id>ours</id><password>secret</password></server></servers><mirrors><mirror>
<id>ours</id><mirrorOf>*</mirrorOf><url>{0}</url></mirror></mirrors></settings>"""
CRATE = {
    "Cargo.toml": b'[package]\nname = "a"\nversion = "0.1.0"\n[dependencies]\nb = "1"\n',
    "src/lib.rs": b"",
}
PROJECT = b"""<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>b</artifactId>
<version>1</version><parent><groupId>c</groupId><artifactId>d</artifactId><version>1</version></parent></project>"""


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize(
    ("program", "file", "settings", "fetch", "tree", "asked"),
    [
        pytest.param(
            "cargo", ".cargo/config.toml", CARGO, "export CARGO_HOME={environment}/cargo; cargo fetch", CRATE,
            "/config.json", marks=pytest.mark.needs("cargo"), id="cargo",
        ),
        pytest.param(
            "mvn", ".m2/settings.xml", MAVEN,
            "export MAVEN_OPTS=-Duser.home={home}; mvn -B -q -Dmaven.repo.local={home}/r validate",
            {"pom.xml": PROJECT},
            "/c/d/1/", marks=pytest.mark.needs("mvn"), id="mvn",
        ),
    ],
)  # fmt: skip
def test_a_fetch_asks_the_users_registry(
    program: str,
    file: str,
    settings: str,
    fetch: str,
    tree: dict[str, bytes],
    asked: str,
    current_folder: Path,
    tmp_path: Path,
) -> None:
    paths: list[str] = []

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

    tools = {program: find_tool(program)[1]}
    line = f"cat {{environment}}/cargo/config.toml {{home}}/.m2/settings.xml 2>/dev/null; {fetch}; exit 3"
    with HTTPServer(("127.0.0.1", 0), Registry) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        write_home(file, settings.replace("{0}", address))
        files = {name: TreeEntry(content) for name, content in tree.items()}
        with pytest.raises(OperatorError) as refused:
            build(reference(line, tools=tools), pack(files), cache=Cache(tmp_path / "environments"))
        server.shutdown()
    assert any(path.startswith(asked) for path in paths), refused.value
    assert address in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        "-r /etc/passwd",
        "--requirement=/etc/passwd",
        "-c other.txt",
        "-e .",
        "x @ https://theirs.invalid/${UV_INDEX_OURS_PASSWORD}/x.whl",
        "x==1 \\\n    -r /etc/passwd",
        "\ufeff-r /etc/passwd",
        "x==1\x0c-r /etc/passwd",
        "x==1 --hash=sha256:00 -r /etc/passwd",
        "x==1 --hash=sha256:00 --extra-index-url https://theirs.invalid",
    ],
)
def test_a_lock_that_reads_files_or_variables_is_refused(line: str) -> None:
    with pytest.raises(OperatorError, match="is not a requirement"):
        read_requirements(f"blinker==1.9 --hash=sha256:00\n{line}\n".encode())


def test_a_lock_does_not_choose_the_index() -> None:
    lines = [
        "--index-url https://t.invalid",
        "-i x",
        "--extra-index-url=x",
        "-f x",
        "--find-links x",
        "--no-index",
    ]
    pins = [
        "# made by uv",
        "blinker==1.9 \\",
        "    --hash=sha256:00",
        "attrs==1 ; python_version > '3' --hash=sha256:0",
    ]
    assert read_requirements("\n".join([*lines, *pins]).encode()).decode().splitlines() == pins


def test_no_program_is_started_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`environment.tools` of a task file; each is asked for its version outside the sandbox."""
    mark = tmp_path / "mark"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\necho 1.0\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name in (str(program), "./program", f"../{tmp_path.name}/program", "/proc/self/cwd/program"):
        with pytest.raises(OperatorError, match="is a path"):
            find_tool(name)
    assert not mark.exists()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert find_tool("program") == (program, "1.0")
    assert mark.exists(), "the control"


def agent_with(binary: Path | str) -> AgentSpec:
    return AgentSpec(kind="claude-code", options={"binary": str(binary)})


@pytest.mark.parametrize("module", ["trialfleet_runner.console", "trialfleet_analysis.viewer.answer_process"])
def test_no_module_of_the_current_folder_is_imported(module: str, mark: Path) -> None:
    words = python_module(module)
    subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert not mark.exists()
    plain = subprocess.run([word for word in words if word != "-P"], capture_output=True, check=False)
    assert plain.returncode == 9, "the control"
    assert mark.exists()


def test_no_runner_imports_from_the_current_folder(mark: Path, tmp_path: Path) -> None:
    launcher = create_launcher(None, tmp_path)
    runner = launcher.start(tmp_path / "no grants", tmp_path / "log")
    wait_until(lambda: bool(select.select([runner.pidfd], [], [], 0)[0]), "the end")
    assert runner.reap() != 9
    launcher.close()
    assert not mark.exists()


def test_our_modules_are_started_in_one_way() -> None:
    """Another way would look in the current folder first."""
    sources = [
        path for part in PARTS for path in (CHECKOUT / part).rglob("*.py") if path.name != "child_program.py"
    ]
    assert len(sources) > 500
    assert [path for path in sources if re.search(r'executable, "-m"', path.read_text("utf-8"))] == []


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_worker_of_ray_imports_from_the_current_folder(mark: Path) -> None:
    private = PrivateRay(cpus=2)
    try:
        there = private.ray.get(private.ray.remote(lambda: sys.path).remote())
    finally:
        private.close()
    assert str(mark.with_name("theirs")) not in there
    assert "" not in there
    assert not mark.exists()


def test_a_picture_is_not_drawn_as_the_current_folder_says(mark: Path) -> None:
    """A link to `/dev/zero` would be read without end."""
    Path("matplotlibrc").write_bytes(b"\xff")
    drawn = "from trialfleet_analysis.report.pictures.drawing import load_matplotlib as load; load()"
    for program, code in ((drawn, 0), ("import matplotlib", 1)):
        ended = subprocess.run((sys.executable, "-P", "-c", program), capture_output=True, text=True, check=False)
        assert ended.returncode == code, ended.stderr
    assert not mark.exists()


def test_a_program_of_the_repository_is_no_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(tmp_path / "shop")
    program = made.write("tools/claude", "#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "link").symlink_to(program)
    folder = made.folder / "trialfleet"
    folder.mkdir()
    for binary in (program, tmp_path / "link", f"{folder}/../tools/claude"):
        with pytest.raises(OperatorError, match="is a program of the repository"):
            refuse_repository_program(agent_with(binary), named_in=folder)
    monkeypatch.chdir(folder)
    for named in ("../tools/claude", "/proc/self/cwd/../tools/claude"):
        with pytest.raises(OperatorError, match="is a program of the repository"):
            refuse_repository_program(agent_with(named))
    refuse_repository_program(agent_with("/bin/sh"), named_in=folder)
    monkeypatch.chdir(tmp_path)
    refuse_repository_program(agent_with(program))


TASK = """\
repo: {{url: ./shop, environment: {{lock: lock.txt, setup: [[touch, {mark}]]}}}}
tasks:
  - id: t
    pre_fix_commit: {before}
    fix_commit: {fix}
    test_file: tests/test_a.py
    prompt_source: failing_test
    status: validated
    fail_to_pass: ["tests/test_a.py::test"]
"""
CAMPAIGN = """\
{{campaign: theirs, seed: 1, tasks: [tasks.yaml], conditions: [none], reps: 1, store: ../out, agent: {agent}}}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with a repository and the files of a campaign of it. Their programs make `mark`, next to it."""
    folder, mark = tmp_path / "theirs", tmp_path / "mark"
    made = Made(folder / "shop")
    before = made.commit("Start", shop__a="x = 1\n")
    fix = made.commit("Fix", shop__a="x = 2\n", tests__test_a="def test():\n    pass\n")
    (folder / "lock.txt").write_text("")
    (folder / "tasks.yaml").write_text(TASK.format(mark=mark, before=before, fix=fix))
    (folder / "claude").write_text(f"#!/bin/sh\ntouch {mark}\necho '2.1.331 (Claude Code)'\n")
    (folder / "claude").chmod(0o755)
    return folder


def test_plan_starts_no_program_beside_the_campaign_file(repository: Path, tmp_path: Path) -> None:
    agent = {"kind": "claude-code", "model": "m", "options": {"binary": str(repository / "claude")}}
    (repository / "campaign.yaml").write_text(CAMPAIGN.format(agent=json.dumps(agent)))
    ended = ran("plan", str(repository / "campaign.yaml"), cwd=tmp_path, expect=2)
    assert "campaign.yaml:1: agent.options.binary" in ended.stderr
    assert "would be started outside the sandbox" in ended.stderr
    assert not (tmp_path / "mark").exists()
    (tmp_path / "elsewhere").mkdir()
    program = (repository / "claude").rename(tmp_path / "elsewhere/claude")
    assert find_program("claude-code", str(program)) == program
    version_of("claude-code", program, "(.*)")
    assert (tmp_path / "mark").exists(), "the control"


def test_commands_that_build_an_environment_need_a_sandbox(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`validate` and `plan` of a Python task with set-up commands."""
    (repository / "campaign.yaml").write_text(CAMPAIGN.format(agent="{kind: nop}"))
    monkeypatch.setenv("TRIALFLEET_CACHE", str(tmp_path / "cache"))
    env = {"TRIALFLEET_ISOLATION": "subreaper"}
    tasks = str(repository / "tasks.yaml")
    for words in (("validate", tasks), ("plan", str(repository / "campaign.yaml"))):
        ended = ran(*words, cwd=tmp_path, expect=2, env=env)
        assert "building its environment may run code of others" in ended.stderr
        assert "--no-sandbox" in ended.stderr
        assert not (tmp_path / "mark").exists()
    ran("validate", "--no-sandbox", tasks, cwd=tmp_path, expect=2, env=env)
    assert (tmp_path / "mark").exists(), "the control"
