"""The fast engine in a process of its own, for who asks more than once: a query that is cancelled or takes too long ends with its process.

In one process it would not (measured with DataFusion 55): a join of all rows with all rows looks up between batches only, and one batch may
take minutes, in which the next query waits for a thread.
"""

import contextlib
import os
import pickle
import queue
import resource
import subprocess
import sys
import threading
import time
from typing import IO, Any

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.query.fast.start import without_unneeded
from orchestration.serving.sql.answer import Answer, Limits, Question

MEMORY = 3 * 1024 * 1024 * 1024
"""Bytes that the process may have; a query may keep a third of them (fast.MEMORY), the rest is for what is not counted."""
GRACE_SECONDS = 5.0
"""More than a query may take: the engine has a limit itself, and says more."""


class FastProcess:
    """Answers one question after the other. The first process starts at once, and is ready in a second."""

    def __init__(self, conf: Conf, limits: Limits) -> None:
        """Use it as a context manager, or close it."""
        self._conf, self._limits = conf, limits
        self._is_cancelled = False
        self._turn = threading.Lock()
        self._process = self._started()

    def __enter__(self) -> "FastProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, question: Question) -> Answer:
        """As FastEngine.ask. A question of another thread is answered first."""
        with self._turn:
            return self._ask(question)

    def _ask(self, question: Question) -> Answer:
        self._is_cancelled = False
        if self._process.poll() is not None:
            self.close()
            self._process = self._started()
        process, began = self._process, time.monotonic()
        assert process.stdin is not None and process.stdout is not None
        timer = threading.Timer(self._limits.seconds + GRACE_SECONDS, process.kill)
        timer.start()
        try:
            _send(process.stdin, question)
            found, is_busy = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            self.close()
            raise self._ended(time.monotonic() - began) from None
        finally:
            timer.cancel()
        if is_busy:  # with what was ended; the next question gets a new process
            self.close()
        if isinstance(found, BaseException):
            raise found
        answer: Answer = found
        return answer

    def cancel(self) -> None:
        """End the question that is being answered; from another thread."""
        self._is_cancelled = True
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):  # what was not sent any more
                if pipe is not None:
                    pipe.close()

    def _started(self) -> "subprocess.Popen[bytes]":
        # A session of its own: Ctrl-C on the terminal is for who asks, who then cancels.
        command = [sys.executable, "-m", __name__]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL  # a process that runs out of memory prints its trace
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, start_new_session=True)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # asking will tell
            _send(process.stdin, (self._conf, self._limits))
        return process

    def _ended(self, seconds: float) -> TidemarkError:
        if self._is_cancelled:
            return TidemarkError("the query was cancelled.")
        if seconds >= self._limits.seconds:
            return TidemarkError(f"the query did not end within {self._limits.seconds:g} s.")
        return TidemarkError("the fast engine ended without an answer, perhaps for want of memory; ask for less at once.")


def _send(pipe: IO[bytes], what: Any) -> None:
    pickle.dump(what, pipe)
    pipe.flush()


def main() -> None:
    """The other side: questions on stdin, answers or errors on stdout, until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed is no answer
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    without_unneeded()
    from orchestration.query.fast.engine import FastEngine

    conf, limits = pickle.load(sys.stdin.buffer)

    engine = FastEngine(conf, limits)
    questions: queue.SimpleQueue[Question] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(questions,), daemon=True).start()
    while True:
        question = questions.get()
        try:
            found: Answer | BaseException = engine.ask(question)
        except TidemarkError as error:
            found = error.with_traceback(None)
        except Exception as error:
            found = TidemarkError(f"the fast engine broke: {type(error).__name__}: {error}")
        _send(answers, (found, engine.is_busy))


def _listen(questions: "queue.SimpleQueue[Question]") -> None:
    """Ends the process when who asks is gone, also in the middle of a query."""
    while True:
        try:
            questions.put(pickle.load(sys.stdin.buffer))
        except EOFError:
            os._exit(0)


if __name__ == "__main__":
    main()
