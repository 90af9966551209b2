"""Servers that are killed or asked to end: what was confirmed stays, what was accepted is done."""

import asyncio
import os
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import uvicorn

from fuzz.run import HERE
from ordspan.serving.running import Server

pytestmark = pytest.mark.slow

KILLS, SEED = "15", "1"


@pytest.mark.skipif(os.name != "posix", reason="needs the signals of POSIX")
def test_a_server_that_is_killed_at_any_moment_loses_nothing():
    """With `--kills 1000` it is the whole measure; others are asked to end, and do."""
    command = [sys.executable, HERE / "serve_kills.py", "--kills", KILLS, "--seed", SEED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost" in done.stdout


def test_a_connection_that_is_being_made_does_not_keep_the_server_from_ending():
    async def end():
        server = Server(uvicorn.Config(lambda: None), print)
        server.servers, server.lifespan = [], SimpleNamespace(shutdown=lambda: asyncio.sleep(0))
        open_ones = server.server_state.connections
        late = Mock(shutdown=lambda: open_ones.discard(late))
        late.transport.is_closing.return_value = False
        ending = asyncio.create_task(server.shutdown())
        await asyncio.sleep(0.01)  # uvicorn has closed those that it knows
        open_ones.add(late)
        await asyncio.wait_for(ending, timeout=30)
        assert not open_ones

    asyncio.run(end())
