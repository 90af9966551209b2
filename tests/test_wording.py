"""Messages propose what their reader has: options of this command, or arguments in Python."""

import ast
import pickle
import re
from pathlib import Path

import pytest
import typer

import ordspan
from ordspan.cli import app
from ordspan.wording import by, columns_option, either, in_a_shell, keep_wording, option

SOURCE = Path(ordspan.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
NAMED = ("option", "columns_option", "in_a_shell")
COMMANDS = dict(typer.main.get_command(app).commands.items())


def options_of(command):
    return {
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }


def loose_strings(tree):
    """Every string of a module but docstrings, and those that `option` shows to a shell only."""
    hidden = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in NAMED:
            hidden |= {id(part) for part in ast.walk(node)}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden.add(id(node.value))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in hidden
        ):
            yield node.lineno, node.value


def modules(*folders):
    for folder in folders:
        yield from sorted((SOURCE / folder).rglob("*.py"))


@pytest.mark.parametrize(
    "path",
    list(modules("files", "commands", "distributed", "estimators", "data", "learners", "core")),
    ids=lambda p: str(p.relative_to(SOURCE)),
)
def test_no_message_of_the_library_names_an_option_by_itself(path):
    found = [
        (line, text)
        for line, text in loose_strings(ast.parse(path.read_text()))
        if OPTION.search(text)
    ]
    assert not found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_in_the_words_of_a_command_is_one_of_its_own(name):
    known = options_of(COMMANDS[name]) | {"--help"}
    for line, text in loose_strings(ast.parse((SOURCE / "cli" / f"{name}.py").read_text())):
        if "ordspan " in text:  # an example of a command, which may be another
            continue
        assert set(OPTION.findall(text)) <= known, (line, text)


def test_every_option_that_messages_may_show_exists_in_some_command():
    known = set().union(*map(options_of, COMMANDS.values()))
    for path in modules("files", "commands", "distributed"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "option":
                text = "".join(
                    part.value
                    for part in ast.walk(node.args[0])
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                )
                assert set(OPTION.findall(text)) <= known, (path, text)


def test_a_function_speaks_on_a_worker_as_it_would_here():
    assert keep_wording(option) is option
    with in_a_shell(["--text"]):
        sent = pickle.loads(pickle.dumps(keep_wording(option)))
    assert sent("--text x", "text=['x']") == "--text x"
    assert option("--text x", "text=['x']") == "text=['x']"


def test_a_way_out_that_the_command_lacks_is_not_named():
    message = "a fault" + either("mend it", by("leave it out with", columns_option("drop", "a b")))
    assert message == "a fault; mend it, or leave it out with drop=['a b']"
    with in_a_shell(["--text"]):
        assert option("--text x", "text=['x']") == "--text x"
        assert (
            "a fault" + either("mend it", by("leave it out with", columns_option("drop", "a")))
            == "a fault; mend it"
        )
    with in_a_shell(["--drop"]):
        assert columns_option("drop", "a b", "c,d") == """--drop 'a b,"c,d"'"""
    assert option("--text x", "text=['x']") == "text=['x']"
