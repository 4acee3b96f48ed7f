"""The pages about the command line and the settings say what the program does: examples are run, tables compared.

`python -m tests.cli.test_docs` writes the table of docs/settings.md anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stentor import cli
from stentor.catalog import ModelSpec
from stentor.settings import Settings, load
from tests.cli.command import fake_player
from tests.conftest import ROOT, Server, environment

COMMANDS = ROOT / "docs" / "cli.md"
SETTINGS = ROOT / "docs" / "settings.md"
TABLE = re.compile(r"(<!-- table: [^\n]*-->\n)(.*?)(<!-- end of table -->)", re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def table() -> str:
    values = Settings.model_validate({}).model_dump(mode="json")
    rows = [f"| `{name}` | {_shown(values[name])} | {one.description} |" for name, one in Settings.model_fields.items()]
    return "\n".join(["| setting | default | |", "|---|---|---|", *rows, ""])


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value) if value or value == 0 else "none"


@pytest.mark.parametrize("script", blocks(COMMANDS, "sh"))
def test_the_examples_run(bundled: Server, tmp_path: Path, script: str) -> None:
    player = fake_player(tmp_path / "bin", "cat > /dev/null; sleep 3", name="ffplay")
    path = f"{player['PATH']}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**environment(port=bundled.port), "PATH": path}
    done = subprocess.run(["bash", "-ec", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for name in re.findall(r"(?:-o|>) (\w+\.\w+)", script):
        assert (tmp_path / name).stat().st_size > 0


def test_every_verb_and_every_exit_code_is_explained() -> None:
    page = COMMANDS.read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)[: len(cli.VERBS)] == list(cli.VERBS)
    codes = {value for name, value in vars(cli).items() if name.startswith("EXIT_")}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)} == {0, *codes}


def test_the_table_of_settings_is_complete_and_equal_to_their_descriptions() -> None:
    found = TABLE.search(SETTINGS.read_text(encoding="utf-8"))
    assert found
    assert found.group(2) == table(), "write it anew: python -m tests.cli.test_docs"


def test_the_settings_file_of_the_page_loads(tmp_path: Path) -> None:
    (example,) = blocks(SETTINGS, "toml")
    (tmp_path / "stentor.toml").write_text(example, encoding="utf-8")
    models = load({}, {}, tmp_path / "stentor.toml").settings.models
    assert set(models) == {"small", "large"}
    assert models["large"].keep_alive == 600


def test_every_key_of_a_model_is_explained() -> None:
    page = SETTINGS.read_text(encoding="utf-8").partition("The long form has these keys")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(ModelSpec.model_fields)


def write() -> None:
    page = SETTINGS.read_text(encoding="utf-8")
    SETTINGS.write_text(TABLE.sub(lambda found: found.group(1) + table() + found.group(3), page), encoding="utf-8")


if __name__ == "__main__":
    write()
