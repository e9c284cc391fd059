"""Inside of the sandbox: bind this process, run the program, report what its calls return.

Whatever is reported from here on may be a lie, for the program can do all that this code can. A lie
about a value gains nothing: the value it should have is not here. Only a test that has to be
decided here could be forged; it is reported with a word that the program was not told.
"""

import json
import os
import resource
import signal
import sys
import types
from dataclasses import dataclass
from typing import Any

from async_rollout.rewards.sandbox import landlock, seccomp, system
from async_rollout.rewards.sandbox.plain import NotPlain, encode

RESULTS = 3  # descriptor
NOBODY = 64999  # user that programs run as where the server is root
_HIGHEST_DESCRIPTOR = 256
_MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Bounds:
    """What holds every child of a server."""

    rules: int | None  # Landlock ruleset
    filter: bytes  # seccomp program
    scratch: str  # working directory
    become: int | None  # user to change to


def bind(bounds: Bounds, output: int, results: int, limits: dict[str, Any]) -> None:
    """Give up everything that a program has no need of. Raises OSError if something cannot be given up."""
    os.setsid()
    null = os.open("/dev/null", os.O_RDONLY)
    results = os.dup(results) if results <= RESULTS else results
    for source, target in ((null, 0), (output, 1), (output, 2), (results, RESULTS)):
        os.dup2(source, target)
    os.chdir(bounds.scratch)
    os.environ.clear()
    seconds = int(limits["seconds"]) + 2
    for limit, value in (
        (resource.RLIMIT_AS, limits["memory_mb"] * _MB),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 8 * _MB),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    if bounds.become is not None:
        os.setgroups([])
        os.setresgid(*[bounds.become] * 3)
        os.setresuid(*[bounds.become] * 3)
    system.drop_capabilities()
    system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)  # after the change of user, which clears it
    system.prctl(system.PR_SET_DUMPABLE, 0)
    system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
    if bounds.rules is not None:
        landlock.restrict(bounds.rules)
    os.closerange(RESULTS + 1, _HIGHEST_DESCRIPTOR)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    seccomp.install(bounds.filter)


def evaluate(code: str, steps: list[dict[str, str]], word: str) -> None:
    """Run the program, then the steps; one line of JSON for it and for each step, until one ends the process.

    A step is {"setup", "expression"}, which reports a value, or {"test"}, which reports `word`.
    """
    write, dumps = os.write, json.dumps
    translate, execute, value_of = compile, exec, eval  # before the program can put others in their place

    def report(line: dict[str, Any]) -> None:
        text = dumps(line).encode() + b"\n"
        while text:
            text = text[write(RESULTS, text) :]

    module = types.ModuleType("answer")
    sys.modules["answer"] = module
    try:
        program = translate(code, "<answer>", "exec", dont_inherit=True)
    except MemoryError:
        return report({"error": "memory_limit"})
    except BaseException:
        return report({"error": "syntax_error"})
    try:
        execute(program, module.__dict__)
    except BaseException as error:
        return report(_failure(error))
    report({})
    for step in steps:
        scope = dict(module.__dict__)
        try:
            if "test" in step:
                execute(translate(step["test"], "<test>", "exec"), scope)
                line = {"word": word}
            else:
                execute(translate(step["setup"], "<test>", "exec"), scope)
                value = value_of(translate(step["expression"], "<test>", "eval"), scope)
                line = {"value": encode(value)}
        except NotPlain as error:
            line = {"error": "fail", "why": f"returned {error}, no plain data"}
        except AssertionError as error:
            line = {"error": "fail"} if "test" in step else _failure(error)
        except BaseException as error:
            line = _failure(error)
        report(line)


def _failure(error: BaseException) -> dict[str, str]:
    kind = "memory_limit" if isinstance(error, MemoryError) else "runtime_error"
    return {"error": kind, "why": type(error).__name__}
