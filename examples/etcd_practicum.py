"""A lock over etcd by hand and by command: Alice takes it, Bob fails, Alice gives it back.

    etcd --enable-v2=true --data-dir /tmp/practicum
    python examples/etcd_practicum.py 127.0.0.1:2379

Three times the same: with API v2 and `etcdctl set --swap-with-value`, as in Burns, "Designing
Distributed Systems", chapter 9; with API v3 and `etcdctl txn`, where Alice compares the revision,
too, when she gives it back; and with `strongroom lock`, which renews and fences. API v2 needs etcd
3.4 or 3.5. What etcdctl and strongroom are given, and what they say, is printed.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

LOCK = "my-lock"
HELP = """Which etcd? Start one, and say where it listens:

  etcd --enable-v2=true --data-dir /tmp/practicum
  python examples/etcd_practicum.py 127.0.0.1:2379
"""


def etcdctl(at: str, api: str, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Print a command, run it, print what it says.

    Arguments:
        at: host:port of the etcd.
        api: "2" or "3".
        words: etcdctl's.
        text: its standard input.
    """
    print(f"  $ ETCDCTL_API={api} {shlex.join(('etcdctl', *words))}")
    for line in filter(None, text.splitlines()):
        print(f"  > {line}")
    done = subprocess.run(
        ["etcdctl", *words],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ETCDCTL_API": api, "ETCDCTL_ENDPOINTS": f"http://{at}"},
    )
    for line in filter(None, (done.stdout + done.stderr).splitlines()):
        print(f"    {line}")
    return done


def with_api_2(at: str) -> None:
    """The book's practicum, word for word."""
    print("API v2")

    made = etcdctl(at, "2", "set", LOCK, "unlocked")
    if made.returncode != 0:
        print("  This etcd does not speak API v2; 3.4 and 3.5 do if started with --enable-v2=true.")
        return
    alice = etcdctl(at, "2", "set", "--swap-with-value", "unlocked", LOCK, "alice")
    bob = etcdctl(at, "2", "set", "--swap-with-value", "unlocked", LOCK, "bob")
    back = etcdctl(at, "2", "set", "--swap-with-value", "alice", LOCK, "unlocked")
    assert (alice.returncode, back.returncode) == (0, 0)
    assert "101: Compare failed ([unlocked != alice])" in bob.stderr and bob.returncode != 0


def with_api_3(at: str) -> None:
    """The same by transactions: compares, what is done if all hold, what else."""
    print("API v3")

    def swap(compares: str, new: str, *flags: str) -> str:
        text = f"{compares}\n\nput {LOCK} {new}\n\nget {LOCK}\n\n"
        return etcdctl(at, "3", "txn", *flags, text=text).stdout

    is_free = f'value("{LOCK}") = "unlocked"'
    etcdctl(at, "3", "put", LOCK, "unlocked")
    alice = json.loads(swap(is_free, "alice", "-w", "json"))
    assert alice["succeeded"]
    assert swap(is_free, "bob").split() == ["FAILURE", LOCK, "alice"]
    # The value alone would also fit if another Alice had taken it meanwhile.
    mine = f'value("{LOCK}") = "alice"\nmod("{LOCK}") = "{alice["header"]["revision"]}"'
    assert swap(mine, "unlocked").split() == ["SUCCESS", "OK"]


def with_strongroom(at: str) -> None:
    """The same with our command: while hers runs she holds the lock; each holder has a fence."""
    print("strongroom")
    store = f"--store=etcd://{at}"
    lock = ("strongroom", "lock", LOCK, store, "--quiet")
    work = 'echo "fence $STRONGROOM_FENCE"'
    hers = (*lock, "--", "sh", "-c", f"{work}; read done")
    print(f"  $ {shlex.join(hers)} &")
    alice = subprocess.Popen(
        [sys.executable, "-m", *hers],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert alice.stdin is not None and alice.stdout is not None
    first = alice.stdout.readline().strip()
    print(f"    {first}")
    seen = ours("locks", "show", LOCK, store)
    assert seen.returncode == 0 and "held" in seen.stdout
    bob = ours(*lock[1:], "--try", "--", "sh", "-c", work)
    assert bob.returncode == 75, "not acquired"
    alice.communicate("done\n")
    assert alice.returncode == 0
    bob = ours(*lock[1:], "--try", "--", "sh", "-c", work)
    assert bob.returncode == 0
    assert int(bob.stdout.split()[-1]) > int(first.split()[-1])


def ours(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours, with this very Python."""
    print(f"  $ {shlex.join(('strongroom', *words))}")
    done = subprocess.run(
        [sys.executable, "-m", "strongroom", *words],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    for line in filter(None, (done.stdout + done.stderr).splitlines()):
        print(f"    {line}")
    return done


def main() -> None:
    """Do it all three ways."""
    if len(sys.argv) != 2:
        print(HELP, end="")
        return
    at = sys.argv[1].removeprefix("http://")
    with_api_2(at)
    with_api_3(at)
    with_strongroom(at)


if __name__ == "__main__":
    main()
