"""Secrets in the files of a context: a matrix of files that teams commit, with and without."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialfleet_deliveries.secret_files import find_secrets, refuse_secrets
from trialfleet_ledger.errors import OperatorError
from trialfleet_repository.trees import TreeEntry

ISSUED = "ghp_" + "Q" * 18 + "ABCDEFGHIJ1234567890"
DRAWN = "q7Zr2LxT9vKe4WmB8nYc1HdS"
NAMES = (".mcp.json", "a.jsonc", "config.toml", ".env", "a.py", "CLAUDE.md")


def lines_of(path: str, text: str) -> list[int]:
    return [place.line for place in find_secrets({path: TreeEntry(text.encode())})]


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        (".mcp.json", json.dumps({"mcpServers": {"g": {"env": {"GITHUB_TOKEN": ISSUED}}}}, indent=1), 5),
        (".mcp.json", json.dumps({"mcpServers": {"g": {"env": {"MODE": DRAWN}}}}), 1),
        (".mcp.json", '{"m": {"headers": {\n"Authorization": "Bearer abcdef"}}}', 2),
        (".mcp.json", '{"m": {"command": "x",\n"args": ["--api-key", "abcdef"]}}', 2),
        (".mcp.json", '{"m": {"args": ["--token=abcdef"]}}', 1),
        (".claude/settings.local.json", '{"env":\n{"ANTHROPIC_API_KEY": "sk-ant-api03-abcdefghijklmnop"}}', 2),
        (".claude/settings.json", '{ // a comment\n"env": {"DB_PASSWORD": "abcdef"},}', 2),
        (".gemini/.env", "# keys\nGEMINI_API_KEY=abcdef\n", 2),
        (".codex/.env", "export OPENAI_API_KEY='abcdef'", 1),
        (".codex/config.toml", '[mcp_servers.x.env]\nA_TOKEN = "abcdef"', 2),
        (".claude/hooks/a.sh", "#!/bin/sh\nAPI_KEY=abcdef run", 2),
        (".claude/hooks/a.py", "API_KEY = 'abcdef'", 1),
        ("CLAUDE.md", f"# Deploy\n\nUse `{ISSUED}`.", 3),
        ("CLAUDE.md", "psql postgres://app:hunter2@db.corp.net/app", 1),
        (".cursorrules", f"Use {ISSUED}", 1),
        (
            "CLAUDE.md",
            "Export your key, for example:\n`export ANTHROPIC_API_KEY=sk-ant-api03-Abcdefghijklmnop`",
            2,
        ),
        (".mcp.json", '{"a": "your own", "m": {"env": {"MODE": "' + ISSUED + '"}}}', 1),
        ("opencode.jsonc", '{ // "a" comment\n"m": {"headers": {\n"x-api-key": "abcdef",},/* , */}}', 3),
        (".mcp.json", '\ufeff{"m": {\n"headers": {"x-api-key": "abcdef"}}}', 2),
        (".mcp.json", '{"m": {"url": "https://a", "args": ["-e",\n"JIRA_TOKEN=abcdef"]}}', 2),
        (".mcp.json", '{"m": {"args": ["--header",\n"Authorization: Bearer abcdef"]}}', 2),
        (".mcp.json", '{"m": {"args": [\n"--header=x-api-key:abcdef", "--env=A=b"]}}', 2),
        (".mcp.json", '{"m": {"args": [\n"--env=JIRA_TOKEN=abcdef"]}}', 2),
        (".mcp.json", '{"m": {"env": {"A_PASSWORD":\n"pa$$w0rd\\u0041"}}}', 2),
        (".env", "A_PASSWORD=pa$$w0rd", 1),
        (".codex/config.toml", "[m.env]\nB = 'x'\nA_TOKEN = 'abcdef'", 3),
        (".mcp.json", f'{{"m": {{"type": "sse",\n"url": "https://a.net/sse?x=1&api_key={DRAWN}"}}}}', 2),
        ("opencode.json", f'{{"provider": {{"x": {{"options": {{\n"apiKey": "{DRAWN}"}}}}}}}}', 2),
        (".codex/config.toml", f"[mcp_servers.x]\nbearer_token = '{DRAWN}'", 2),
        (".goose/config.yaml", f"model: x\napi_key: {DRAWN}", 2),
        (".claude/settings.json", f'{{"hooks": [{{"command":\n"API_KEY={DRAWN} run"}}]}}', 2),
        (".claude/settings.local.json", f'{{"allow": [\n"Bash(API_KEY={DRAWN} ./run:*)"]}}', 2),
        (".claude/hooks/a.sh", f"#!/bin/sh\ncurl -H 'Authorization: Bearer {DRAWN}' https://a.net", 2),
        (".claude/hooks/a.mjs", f"const apiKey = '{DRAWN}';", 1),
        (
            ".claude/hooks/a.sh",
            "curl https://hooks.slack.com/services/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",
            1,
        ),
        (".claude/skills/x/.npmrc", f"//registry.npmjs.org/:_authToken={DRAWN}", 1),
        (".gemini/.env", "# lower case\napi_key=abcdef", 2),
        (".claude/skills/x/.npmrc", "registry=https://r.net\n//r.net/:_password=abcdef", 2),
        (".claude/skills/x/.npmrc", "_auth=abcdef", 1),
        (".claude/skills/x/.npmrc", "//r.net/npm/:_authToken=abcdef", 1),
        (".claude/skills/x/.netrc", "machine a.net\nlogin joe password abcdef", 2),
        (".claude/skills/x/_netrc", "machine a.net login joe\n  password abcdef", 2),
        (".claude/skills/x/.pypirc", "[own]\nusername = joe\npassword = abcdef", 3),
        (".claude/skills/x/deploy.env", "mode=fast\ndb_password=abcdef", 2),
        ("CLAUDE.md", f"# Deploy\n\n```sh\nexport API_KEY={DRAWN}\n```", 4),
    ],
)
def test_what_options_env_refuses_is_refused_with_its_line(path: str, text: str, line: int) -> None:
    assert line in lines_of(path, text)
    with pytest.raises(
        OperatorError, match=rf"{path.replace('.', '[.]')}', line \d+, looks like a secret"
    ) as caught:
        refuse_secrets({path: TreeEntry(text.encode())}, "contexts.own")
    assert not any(value in str(caught.value) for value in (ISSUED, DRAWN, "abcdef", "hunter2"))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".mcp.json", '{"m": {"env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "A_KEY": "$KEY", "B_TOKEN": ""}}}'),
        (".mcp.json", '{"m": {"headers": {"Authorization": "Bearer ${TOKEN}", "X": "1"}}}'),
        (".mcp.json", '{"m": {"headers": {"Authorization": "Bearer $TOKEN"}, "args": ["-e", "A_TOKEN", "B=c"]}}'),
        (
            ".mcp.json",
            '{"m": {"args": ["--header", "Authorization: Bearer ${T}", "https://a:443", "-e", "K=$K"]}}',
        ),
        (".claude/a.json", '{"rules": ["Token: ask the vault for it", "Bash(npm run x:*)", "Key: ctrl k or y"]}'),
        ("CLAUDE.md", "Connect to postgres://app:secret@db.example.com/app."),
        (
            ".mcp.json",
            '{"inputs": [{"id": "token", "password": true}], "m": {"env": {"T_TOKEN": "${input:token}"}}}',
        ),
        (".opencode/opencode.json", '{"provider": {"x": {"options": {"apiKey": "{env:KEY}"}}}}'),
        (".claude/keybindings.json", '{"bindings": [{"key": "ctrl+k"}]}'),
        (".claude/settings.json", '{"env": {"MAX_THINKING_TOKENS": "9999", "DISABLE_TOKEN": "1"}}'),
        (".claude/hooks/a.sh", '#!/bin/sh\nTOKEN=$(gh auth token)\nKEY="${KEY:-}"'),
        (".claude/hooks/a.py", 'API_KEY = os.environ["API_KEY"]'),
        ("CLAUDE.md", "Start it with postgres://postgres:postgres@localhost:5432/shop or redis://u:p@redis:6379."),
        ("CLAUDE.md", "Set `export OPENAI_API_KEY=sk-your-key-goes-here-please`; see AKIAIOSFODNN7EXAMPLE."),
        (
            "AGENTS.md",
            "The API_KEY and the TOKEN come from the vault. commit 0123456789abcdef0123456789abcdef01234567",
        ),
        (".claude/skills/x/logo.png", "\0GITHUB_TOKEN=abcdef"),
        (
            ".mcp.json",
            '{"m": {"url": "https://a.net/sse?api_key=${API_KEY_OF_THE_SERVER}", "publicKey": "' + DRAWN + '"}}',
        ),
        (".claude/a.json", '{"max_tokens": "4096", "key": "ctrl+shift+alt+k", "tokenizer": "cl100k_base"}'),
        (
            "CLAUDE.md",
            "Never write `API_KEY=...`: set `token: $VAULT_TOKEN_OF_THE_SERVICE`, or key=value_of_your_key.",
        ),
        ("CLAUDE.md", "The key: a commit such as 0123456789abcdef0123456789abcdef01234567."),
        (".claude/skills/x/.env.example", "# Your API key: get it from the console\nAPI_KEY=\nDEBUG=1\n"),
        (".claude/skills/x/.npmrc", "//r.net/:_authToken=${NPM_TOKEN}\nalways-auth=true\nsave-exact=true"),
        (".claude/skills/x/.netrc", "machine a.net login joe password $PASSWORD\n# password rules"),
        (".claude/skills/x/.pypirc", "[distutils]\nindex-servers = own\n[own]\nusername = __token__"),
        ("CLAUDE.md", "cache-key: d41d8cd98f00b204e9800998ecf8427e"),
        ("CLAUDE.md", "Idempotency-Key: 7f3d2b1c9e8a4f6d8b1a2c3d4e5f6071"),
        ("CLAUDE.md", "GET /rows?page_token=CAUQAA2B3c4D5e6F7g8H9i0J"),
        ("CLAUDE.md", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
        ("CLAUDE.md", "deployKey: AAAAC3NzaC1lZDI1NTE5AAAAIBq7Zr2LxT9vKe4WmB8nYc1HdS"),
        ("CLAUDE.md", "key: sha384-q7Zr2LxT9vKe4WmB8nYc1HdSq7Zr2LxT9vKe4WmB8nYc1HdS"),
        ("CLAUDE.md", "key:\n\nd41d8cd98f00b204e9800998ecf8427e  dist/a.tar"),
        ("CLAUDE.md", "Authorization: Bearer ${Q7ZR2LXT9VKE4WMB8NYC}"),
    ],
)
def test_what_is_no_secret_is_taken(path: str, text: str) -> None:
    assert lines_of(path, text) == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("path", [".mcp.json", "CLAUDE.md"])
def test_secrets_are_found_in_every_encoding(path: str, encoding: str) -> None:
    entry = TreeEntry(f'{{"m": {{"env":\n {{"A": "{ISSUED}"}}}}}}'.encode(encoding))
    assert [place.line for place in find_secrets({path: entry})] == [2]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".mcp.json", '{"env": {' + ", ".join(f'"K{n}_TOKEN": "v{n}\\u0041"' for n in range(20_000)) + "}}"),
        (".env", "\n".join(f"K{n}_TOKEN=v{n}" for n in range(20_000))),
        ("CLAUDE.md", f"{ISSUED}\n" * 20_000),
        ("CLAUDE.md", "eyJ-" * 100_000),
        (".mcp.json", "/*" * 100_000),
        (".mcp.json", '\\"' * 100_000),
        (".mcp.json", '[" ' + "--a" + "=a" * 100_000 + '"]'),
        ("CLAUDE.md", "token=a" * 100_000),
        ("CLAUDE.md", "token" + " " * 500_000),
        (".env", " " * 500_000),
    ],
)
def test_large_files_take_time_in_proportion(path: str, text: str) -> None:
    started = time.process_time()
    lines_of(path, text)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("depth", [400, 900, 100_000])
@pytest.mark.parametrize(("start", "end"), [("[", "]"), ('{"env":', "}")])
def test_deep_files_are_read_without_an_error(start: str, end: str, depth: int) -> None:
    text = start * depth + f'{{"env": {{"A_TOKEN": "{ISSUED}"}}}}' + end * depth
    assert lines_of(".mcp.json", text) == [1]


@given(st.text(st.sampled_from("{}[]\"\\',:/*-=@$\n eyJsk_TOKENenv"), max_size=60), st.sampled_from(NAMES))
def test_no_file_raises_an_error(text: str, path: str) -> None:
    assert all(1 <= line <= text.count("\n") + 1 for line in lines_of(path, text))
