#!/usr/bin/env python3
"""Replays kubectl transcripts against a server and says where what kubectl printed differs.

The expectations were recorded from kube-apiserver v1.36.4 serving cluster-crd.yaml. A transcript is a
JSON file {"name", "area", "commands", "kubectl"?, "note"?, "mask"?}; its commands run in order, in an
empty directory, after every cluster on the server was removed. Never point this at a registry in use.

    kubectl.py --kubectl PATH --kubeconfig F [--only REGEX] [--quiet] [transcripts or folders ...]
    kubectl.py --kubectl PATH --kubeconfig F --record ...     # rewrites the expectations

A command is {"args": [...], "expect": {"code", "stdout", "stderr"}} and optionally
    "stdin": text             what kubectl reads from standard input
    "files": {name: text}     written to the working directory before the command starts
    "env": {name: text}       added to the environment, such as KUBE_EDITOR
    "grep": REGEX             only these lines of standard output are compared
    "timeout": S              kubectl is ended after S seconds (60 without it); the code is then "ended"
    "background": NAME        started, and left running once it printed "ready" lines (or "delay" seconds)
    "save": NAME              keeps what it printed; {saved:NAME} in later arguments and standard input stands for it
    "ours": {"code", "has": [texts]}   what we do on purpose where the reference differs: instead of "expect"
or it is one of
    {"collect": NAME, "lines"?: N, "expect"}   waits for a background command: for its exit, or until it
                              printed N lines of standard output and is then ended (code "ended")
    {"sleep": S}              waits

"kubectl" limits a transcript to some versions of kubectl: ">=1.27", "<1.33" or both with a comma.
"mask" lists regular expressions; what they match is replaced by MASKED before the comparison.
Ages, times, uids, resource versions, continue tokens, the server's address, temporary paths, log
prefixes, the prose of explain, runs of empty lines and the padding of columns are normalised. Only the standard library is used.

Exit status: 0 when every transcript agrees, 1 otherwise. The last line is "N passed, M failed".
"""
import argparse
import difflib
import json
import os
import pathlib
import re
import shlex
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
COLLECTION = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"
LIMIT = 60
NOTHING = {"code": "none recorded", "stdout": "", "stderr": ""}

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
RULES = [(re.compile(pattern, re.M), new) for pattern, new in [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}", "TIME"),
    (r"\b(LIVE|MERGED)-\d+", r"\1"),
    (r"\bkubectl-edit-\w+\.(yaml|json)", r"kubectl-edit.\1"),
    (r"^([EWI])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (\S+?):\d+\]", r"\1 LOG \2]"),
    # At kubectl's own deadline it is a race whether its reflector sees the deadline first, or its watch end and logs that.
    # Over HTTP/2 the deadline wins; over HTTP/1.1 kubectl prints these lines against kube-apiserver too (DISABLE_HTTP2=1).
    (r"^[EWI] LOG reflector\.go\] .*(very short watch|context deadline exceeded).*\n", ""),
    (r'(resourceVersion\\?"?: ?\\?"?)\d+', r"\1RV"),
    (r"(Resource Version: +)\d+", r"\1RV"),
    (r'("continue": ?")[^"]+', r"\1CONTINUE"),
    (r"(?<=  )(\d+[dhms])+(?=\s|$)", "AGE"),
    (r"[ \t]+$", ""),
    (r"\n{3,}", "\n\n"),
]]
HEADER = re.compile(r"[A-Z][\w.-]*(?: {2,}[A-Z][\w.-]*)+ *")


def unpad(text):
    """Two spaces between columns. Below a table's header an empty cell is shown as "" and so keeps its place."""
    lines, starts = [], []
    for line in text.split("\n"):
        if HEADER.fullmatch(line):
            starts = [word.start() for word in re.finditer(r"\S+", line)]
        elif not line or any(line[start - 1:start] not in ("", " ") for start in starts[1:]):
            starts = []
        if starts:
            ends = starts[1:] + [None]
            cells = [line[start:end].strip() for start, end in zip(starts, ends)]
            lines.append("  ".join(re.sub(" {2,}", "  ", cell) or '""' for cell in cells))
        else:
            lines.append(re.sub(r"(?<=\S) {2,}", "  ", line))
    return "\n".join(lines)


class Normaliser:
    """Replaces what changes from run to run. Equal uids keep equal names within a transcript."""

    def __init__(self, fixed, masks):
        self.fixed = fixed
        self.masks = [re.compile(mask, re.M) for mask in masks]
        self.uids = {}

    def __call__(self, text):
        for old, new in self.fixed:
            text = text.replace(old, new)
        text = unpad(text)
        text = UUID.sub(lambda m: self.uids.setdefault(m[0], "UID-%d" % (len(self.uids) + 1)), text)
        for pattern, new in RULES:
            text = pattern.sub(new, text)
        for mask in self.masks:
            text = mask.sub("MASKED", text)
        return text


def outline(explained):
    """The headings and fields of what kubectl explain prints, without the descriptions: those are each server's own."""
    kept = re.compile(r"\s*([A-Z]+:|ENUM\b|\S+\s+<[^>]*>)")
    return "".join(line + "\n" for line in explained.split("\n") if kept.match(line) and not line.startswith("DESCRIPTION"))


class Process:
    """A running kubectl whose output is read as it comes."""

    def __init__(self, argv, cwd, env, stdin):
        self.child = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.output = {"stdout": b"", "stderr": b""}
        self.ended = False
        self.readers = [threading.Thread(target=self.read, args=(name,), daemon=True) for name in self.output]
        for reader in self.readers:
            reader.start()
        try:
            self.child.stdin.write((stdin or "").encode())
            self.child.stdin.close()
        except BrokenPipeError:
            pass

    def read(self, name):
        stream = getattr(self.child, name)
        for piece in iter(lambda: os.read(stream.fileno(), 65536), b""):
            self.output[name] += piece

    def wait(self, limit, lines=None):
        """Waits for the exit or for that many lines; False when the time is up first."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            if lines is not None and self.output["stdout"].count(b"\n") >= lines:
                return True
            if self.child.poll() is not None:
                return True
            time.sleep(0.01)
        return False

    def end(self):
        if self.child.poll() is None:
            self.ended = True
            self.child.kill()

    def result(self, normalise, grep=""):
        code = self.child.wait()
        for reader in self.readers:
            reader.join(5)
        text = {name: data.decode(errors="replace") for name, data in self.output.items()}
        if grep:
            text["stdout"] = "".join(line for line in text["stdout"].splitlines(True) if re.search(grep, line))
        return {"code": "ended" if self.ended else code, **{name: normalise(text[name]) for name in text}}


class Runner:
    def __init__(self, args):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="transcripts-"))
        self.kubectl = self.root / "bin" / "kubectl"
        self.kubectl.parent.mkdir()
        self.kubectl.symlink_to(pathlib.Path(args.kubectl).resolve())
        self.kubeconfig, self.config = str(pathlib.Path(args.kubeconfig).resolve()), None
        self.fresh()
        version = json.loads(self.plain("version", "--client", "-o", "json"))["clientVersion"]["gitVersion"]
        self.version = tuple(int(part) for part in re.match(r"v(\d+)\.(\d+)", version).groups())
        config = json.loads(self.plain("config", "view", "--minify", "--raw", "-o", "json"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server = cluster["server"].rstrip("/")
        self.token, self.authority = user.get("token"), cluster.get("certificate-authority")
        self.config = self.plain("config", "view", "--raw", "--minify", "--flatten")
        self.kubeconfig = str(self.root / "kubeconfig")

    def fresh(self):
        """Empties the working, home, cache and temporary directories; a transcript may change its own kubeconfig."""
        for name in ("cwd", "home", "cache", "tmp"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            (self.root / name).mkdir()
        if self.config:
            (self.root / "kubeconfig").write_text(self.config)

    def start(self, args, env=None, stdin=None):
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "KUBECONFIG": self.kubeconfig,
            "HOME": str(self.root / "home"), "KUBECACHEDIR": str(self.root / "cache"),
            "TMPDIR": str(self.root / "tmp"), "LANG": "C", "LC_ALL": "C", "TZ": "UTC", "TERM": "dumb"}
        argv = [str(self.kubectl), "--cache-dir=" + str(self.root / "cache"), *args]
        return Process(argv, self.root / "cwd", {**environment, **(env or {})}, stdin)

    def plain(self, *args, stdin=None):
        process = self.start(args, stdin=stdin)
        if not process.wait(LIMIT):
            process.end()
        result = process.result(lambda text: text)
        if result["code"] != 0:
            raise RuntimeError("kubectl %s: %s" % (shlex.join(args), result["stderr"]))
        return result["stdout"]

    def send(self, method, path, body=None):
        """One request without kubectl, which takes a tenth of a second to start."""
        request = urllib.request.Request(self.server + path, method=method, headers={
            "Authorization": "Bearer " + self.token, "Content-Type": "application/json"})
        trust = ssl.create_default_context(cafile=self.authority)
        try:
            with urllib.request.urlopen(request, body, timeout=LIMIT, context=trust) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if method == "PUT" and error.code in (404, 409):  # garbage collection was faster
                return None
            raise RuntimeError("%s %s: %s" % (method, path, error)) from error
        except urllib.error.URLError as error:
            raise RuntimeError("%s %s: %s" % (method, path, error)) from error

    def replace(self, path, item):
        if self.token and self.authority:
            self.send("PUT", path, json.dumps(item).encode())
        else:
            self.plain("replace", "--raw", path, "-f", "-", stdin=json.dumps(item))

    def clean(self):
        """Removes every cluster, also one that finalizers hold."""
        direct = self.token and self.authority
        for _ in range(50):
            listed = self.send("GET", COLLECTION) if direct else json.loads(self.plain("get", "--raw", COLLECTION))
            if not listed.get("items"):
                return
            for item in listed["items"]:
                if item["metadata"].pop("finalizers", None):
                    self.replace(COLLECTION + "/" + item["metadata"]["name"], item)
            if direct:
                self.send("DELETE", COLLECTION)
            else:
                self.plain("delete", "--raw", COLLECTION)
        raise RuntimeError("the clusters cannot be removed")

    def run(self, transcript):
        """The transcript's commands and what they gave: a list of (title, command, result)."""
        self.clean()
        self.fresh()
        host = self.server.split("//", 1)[-1]
        normalise = Normaliser([(str(self.root), "/TMP"), (self.server, "https://SERVER"), (host, "SERVER")],
                               transcript.get("mask", []))
        running, results, saved = {}, [], {}

        def filled(text):
            return text and re.sub(r"\{saved:(\w+)\}", lambda m: saved[m[1]], text)

        try:
            for command in transcript["commands"]:
                if "sleep" in command:
                    time.sleep(command["sleep"])
                    continue
                if "collect" in command:
                    title = "(collect %s)" % command["collect"]
                    process = running.pop(command["collect"])
                else:
                    title = "$ kubectl " + shlex.join(command["args"])
                    for name, text in command.get("files", {}).items():
                        path = self.root / "cwd" / name
                        path.parent.mkdir(parents=True, exist_ok=True)
                        path.write_text(text)
                    arguments = [filled(argument) for argument in command["args"]]
                    process = self.start(arguments, command.get("env"), filled(command.get("stdin")))
                    if "background" in command:
                        running[command["background"]] = process
                        if "ready" in command:
                            process.wait(LIMIT, command["ready"])
                        time.sleep(command.get("delay", 0))
                        continue
                process.wait(command.get("timeout", LIMIT), command.get("lines"))
                if "lines" in command:
                    time.sleep(0.3)  # an answer with too many lines is to be seen
                process.end()
                result = process.result(normalise, command.get("grep"))
                if "save" in command:
                    saved[command["save"]] = process.output["stdout"].decode(errors="replace").strip()
                if command.get("args", [""])[0] == "explain":
                    result["stdout"] = outline(result["stdout"])
                results.append((title, command, result))
        finally:
            for process in running.values():
                process.end()
        return results


def admits(rule, version):
    """Whether a rule such as ">=1.27,<1.33" admits a version (1, 30)."""
    for part in filter(None, re.split(r"[,\s]+", rule or "")):
        operator, major, minor = re.fullmatch(r"(>=|<)(\d+)\.(\d+)", part).groups()
        if (version >= (int(major), int(minor))) != (operator == ">="):
            return False
    return True


def shown(title, result):
    text = title + "\n(exit code %s)\n--- stdout\n%s" % (result["code"], result["stdout"])
    return (text.rstrip("\n") + "\n--- stderr\n" + result["stderr"]).rstrip("\n").split("\n")


def transcripts(paths):
    for path in paths:
        path = pathlib.Path(path)
        yield from sorted(path.glob("*.json")) if path.is_dir() else [path]


def agrees(command, result):
    """Whether a result is as expected; "ours" says how we differ from the reference on purpose."""
    ours = command.get("ours")
    if ours is None:
        return command.get("expect") == result
    printed = result["stdout"] + result["stderr"]
    return ours["code"] == result["code"] and all(part in printed for part in ours["has"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubectl", default=shutil.which("kubectl"), help="the kubectl to run")
    parser.add_argument("--kubeconfig", required=True, help="how to reach the server")
    parser.add_argument("--record", action="store_true", help="write what was seen as the expectation")
    parser.add_argument("--only", default="", metavar="REGEX", help="only transcripts whose area/name matches")
    parser.add_argument("--quiet", action="store_true", help="name the failures, without their differences")
    parser.add_argument("paths", nargs="*", default=[HERE / "kubectl"], help="transcripts, or folders of them")
    args = parser.parse_args()
    if not args.kubectl:
        parser.error("no kubectl on the PATH; give --kubectl")

    runner = Runner(args)
    passed, failed, skipped = 0, 0, 0
    try:
        for path in transcripts(args.paths):
            transcript = json.loads(path.read_text())
            title = "%s/%s" % (transcript["area"], transcript["name"])
            if not re.search(args.only, title):
                continue
            if not admits(transcript.get("kubectl"), runner.version):
                skipped += 1
                continue
            try:
                results = runner.run(transcript)
            except (RuntimeError, ValueError) as error:
                failed += 1
                print("FAIL %s: %s" % (title, error), flush=True)
                continue
            if args.record:
                for _, command, result in results:
                    command["expect"] = result
                path.write_text(json.dumps(transcript, indent=1, ensure_ascii=False) + "\n")
            wrong = [(head, command.get("expect", NOTHING), result)
                     for head, command, result in results if not agrees(command, result)]
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print("FAIL " + title, flush=True)
            for head, expect, result in wrong if not args.quiet else []:
                for line in difflib.unified_diff(shown(head, expect), shown(head, result), "expected", "got", n=1000,
                                                 lineterm=""):
                    print("  " + line)
        runner.clean()
    except RuntimeError as error:
        failed += 1
        print("FAIL to clean up: %s" % error)
    finally:
        shutil.rmtree(runner.root, ignore_errors=True)
    if skipped:
        print("%d not for kubectl %d.%d" % (skipped, *runner.version))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
