"""The command `torchlab`."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import types

import pytest
from jupyter_server import serverapp

from torchlab.cli import environment, info, lab, main

ROOT = pathlib.Path(__file__).resolve().parents[1]


def torchlab(*arguments: str, cwd: pathlib.Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a user runs it."""
    return subprocess.run(
        [sys.executable, "-m", "torchlab", *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


class TestCommandLine:
    @pytest.mark.parametrize("argv", [["--help"], ["lab", "--help"], ["info", "-h"]])
    def test_help_is_a_success(self, argv, capsys) -> None:
        with pytest.raises(SystemExit) as e:
            main(argv)
        assert e.value.code == 0
        assert "usage: torchlab" in capsys.readouterr().out

    def test_help_names_the_commands_and_exit_codes(self, capsys) -> None:
        with pytest.raises(SystemExit):
            main(["--help"])
        out = capsys.readouterr().out
        assert all(word in out for word in ("lab", "run", "info", "exit codes"))

    @pytest.mark.parametrize(
        "argv", [["nonesuch"], ["--nonesuch"], ["info", "extra"], ["lab", "--port", "70000"]]
    )
    def test_wrong_usage_is_2(self, argv, capsys) -> None:
        with pytest.raises(SystemExit) as e:
            main(argv)
        assert e.value.code == 2
        assert "error:" in capsys.readouterr().err

    def test_no_command_is_2_and_shows_help(self, capsys) -> None:
        assert main([]) == 2
        assert "usage: torchlab" in capsys.readouterr().err


class TestRun:
    def test_script_is_main_with_its_arguments(self, tmp_path) -> None:
        folder = tmp_path / "scripts"
        folder.mkdir()
        (folder / "neighbour.py").write_text("VALUE = 7\n")
        (folder / "script.py").write_text(
            "import sys, torch, torchlab, neighbour\n"
            "if __name__ == '__main__':\n"
            "    class Local: pass\n"
            "    import __main__\n"
            "    print(sys.argv, neighbour.VALUE, torch is torchlab, __main__.Local is Local)\n"
            "    print(__file__)\n"
        )
        done = torchlab("run", "scripts/script.py", "--help", "-m", "x", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            "['scripts/script.py', '--help', '-m', 'x'] 7 True True",
            str(folder / "script.py"),
        ]

    def test_errors_are_shown_from_the_script_on(self, tmp_path) -> None:
        (tmp_path / "s.py").write_text("def f():\n    1 / 0\nf()\n")
        (tmp_path / "wrong.py").write_text("x = (\n")
        for script in ("s.py", "wrong.py"):  # what python itself says of them
            plain = subprocess.run(
                [sys.executable, script], capture_output=True, text=True, cwd=tmp_path
            )
            assert torchlab("run", script, cwd=tmp_path).stderr == plain.stderr
        assert "Traceback" in torchlab("run", "-m", "s", cwd=tmp_path).stderr
        assert "torchlab" not in torchlab("run", "-m", "s", cwd=tmp_path).stderr

    def test_module(self, tmp_path) -> None:
        (tmp_path / "package").mkdir()
        (tmp_path / "package" / "__init__.py").write_text("")
        (tmp_path / "package" / "part.py").write_text(
            "import sys, torch\nfrom . import __name__ as parent\n"
            "print(__name__, parent, sys.argv[1:], torch.__spec__.name, sys.argv[0] == __file__)\n"
        )
        done = torchlab("run", "-m", "package.part", "--flag", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "__main__ package ['--flag'] torchlab True\n"

    @pytest.mark.parametrize(
        ("source", "code"),
        [("import sys; sys.exit(7)", 7), ("raise SystemExit", 0), ("1 / 0", 1), ("exit('x')", 1)],
    )
    def test_exit_code_passes_through(self, tmp_path, source, code) -> None:
        (tmp_path / "s.py").write_text(source + "\n")
        done = torchlab("run", "s.py", cwd=tmp_path)
        assert done.returncode == code
        assert ("ZeroDivisionError" in done.stderr) == (source == "1 / 0")

    def test_a_missing_part_is_named(self, tmp_path) -> None:
        (tmp_path / "s.py").write_text("import torch.nonesuch\n")
        done = torchlab("run", "s.py", cwd=tmp_path)
        assert done.returncode == 1
        assert "torchlab has no 'torchlab.nonesuch'" in done.stderr

    @pytest.mark.parametrize(
        ("argv", "says"),
        [
            (["run"], "which script"),
            (["run", "-m"], "name of a module"),
            (["run", "--flag", "s.py"], "unknown option --flag"),
            (["run", "no/such.py"], "can't open file 'no/such.py'"),
            (["run", "--"], "which script"),
        ],
    )
    def test_wrong_usage_is_2(self, argv, says, capsys) -> None:
        assert main(argv) == 2
        assert says in capsys.readouterr().err

    def test_help(self, capsys) -> None:
        assert main(["run", "--help"]) == 0
        assert "SCRIPT" in capsys.readouterr().out


class TestLab:
    @pytest.fixture
    def started(self, monkeypatch) -> list[list[str]]:
        """JupyterLab that only notes how it was started."""
        calls: list[list[str]] = []
        monkeypatch.setattr(environment, "has_module", lambda name: True)
        monkeypatch.setattr(lab, "labapp", types.SimpleNamespace(main=calls.append))
        return calls

    def test_opens_the_given_notebook_on_loopback(self, tmp_path, started) -> None:
        notebook = tmp_path / "mine.ipynb"
        notebook.write_text("{}")
        assert main(["lab", "--port", "9123", "--no-browser", str(notebook)]) == 0
        (argv,) = started
        assert argv[0] == str(notebook)
        assert "--ServerApp.ip=127.0.0.1" in argv
        assert f"--ServerApp.root_dir={tmp_path}" in argv
        assert "--ServerApp.port=9123" in argv and "--no-browser" in argv

    def test_by_default_no_port_and_a_browser(self, tmp_path) -> None:
        argv = lab.arguments(tmp_path / "a.ipynb", None, browser=True)
        assert not any(a.startswith(("--ServerApp.port", "--no-browser")) for a in argv)

    def test_jupyter_knows_these_options(self, tmp_path) -> None:
        notebook = tmp_path / "a.ipynb"
        notebook.write_text("{}")
        argv = lab.arguments(notebook, 9123, browser=False)
        app = serverapp.ServerApp()
        app.parse_command_line(argv)  # SystemExit for an option that it does not know
        given = app.config.ServerApp
        assert (given.ip, given.port, given.open_browser) == ("127.0.0.1", 9123, False)
        assert given.root_dir == str(tmp_path)

    def test_missing_notebook_is_2(self, started, capsys) -> None:
        assert main(["lab", "no-such.ipynb"]) == 2
        assert "no-such.ipynb" in capsys.readouterr().err
        assert not started

    def test_without_jupyterlab_it_says_what_to_install(self, monkeypatch, capsys) -> None:
        monkeypatch.setattr(environment, "has_module", lambda name: False)
        assert main(["lab"]) == 1
        assert "pip install 'torchlab[lab]'" in capsys.readouterr().err

    def test_checkout_notebooks_are_used_in_place(self, tmp_path) -> None:
        (tmp_path / "pyproject.toml").write_text("")
        (tmp_path / "notebooks").mkdir()
        (tmp_path / "notebooks" / lab.START).write_text("{}")
        found = lab.notebooks_folder(tmp_path / "torchlab", tmp_path / "elsewhere")
        assert found == tmp_path / "notebooks"

    def test_wheel_notebooks_are_copied_once(self, tmp_path) -> None:
        package, current = tmp_path / "site" / "torchlab", tmp_path / "work"
        (package / "_notebooks" / "images").mkdir(parents=True)
        current.mkdir()
        (package / "_notebooks" / lab.START).write_text("new")
        (package / "_notebooks" / "images" / "a.png").write_bytes(b"png")
        folder = lab.notebooks_folder(package, current)
        assert folder == current / lab.COPY
        assert (folder / "images" / "a.png").read_bytes() == b"png"
        (folder / lab.START).write_text("edited")
        lab.notebooks_folder(package, current)
        assert (folder / lab.START).read_text() == "edited"

    def test_no_notebooks_at_all(self, tmp_path) -> None:
        with pytest.raises(FileNotFoundError, match="no notebooks"):
            lab.notebooks_folder(tmp_path / "torchlab", tmp_path)


class TestInfo:
    def test_prints_every_section(self, capsys) -> None:
        assert main(["info"]) == 0
        out = capsys.readouterr().out
        for word in ("versions", "numpy", "devices", "cpu", "sim", "compiler", "BLAS"):
            assert word in out

    def test_json(self, capsys) -> None:
        assert main(["info", "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["versions"]["numpy"][0].isdigit()
        assert all(set(item) == {"what", "cost", "remedy"} for item in report["missing"])

    def test_what_is_missing_and_what_it_costs(self, monkeypatch) -> None:
        monkeypatch.setattr(environment, "find_compilers", list)
        monkeypatch.setattr(environment, "find_chromium", lambda: None)
        monkeypatch.setattr(environment, "has_module", lambda name: False)
        monkeypatch.setattr(environment, "package_version", lambda name: None)
        text = info.text_of(info.collect())
        assert "none found" in text
        assert "Python reference kernels" in text
        assert "CuPy is not installed" in text and "torchlab[cuda12]" in text
        assert "apt-get install chromium" in text
        assert "torchlab[lab]" in text

    def test_what_the_fast_extra_costs(self, monkeypatch) -> None:
        monkeypatch.setattr(environment, "package_version", lambda name: None)
        for machine, told in (("x86_64", True), ("aarch64", False)):
            monkeypatch.setattr(info.platform, "machine", lambda machine=machine: machine)
            monkeypatch.setattr(info.sys, "platform", "linux")
            assert ("torchlab[fast]" in info.text_of(info.collect())) is told

    def test_blas_of(self) -> None:
        blas = {"name": "scipy-openblas", "found": True, "version": "0.3.31"}
        assert info.blas_of({"Build Dependencies": {"blas": blas}}) == "scipy-openblas 0.3.31"
        assert info.blas_of({"Build Dependencies": {"blas": {"found": False}}}).startswith("none")
        assert info.blas_of({}).startswith("none")

    def test_cuda_names_the_devices_or_the_reason(self, monkeypatch) -> None:
        monkeypatch.setattr(environment, "has_module", lambda name: True)
        runtime = types.SimpleNamespace(
            getDeviceCount=lambda: 2, getDeviceProperties=lambda i: {"name": b"GPU %d" % i}
        )
        fake = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime))
        monkeypatch.setattr(info, "cupy", fake)
        assert info.cuda_devices() == ("GPU 0, GPU 1", "")

        def fails() -> int:
            raise RuntimeError("cudaErrorInsufficientDriver")

        runtime.getDeviceCount = fails
        names, reason = info.cuda_devices()
        assert names is None and "cudaErrorInsufficientDriver" in reason


class TestEnvironment:
    def test_first_line_of(self) -> None:
        assert environment.first_line_of([sys.executable, "-c", "print('a'); print('b')"]) == "a"
        assert environment.first_line_of([sys.executable, "-c", "raise SystemExit(1)"]) is None
        assert environment.first_line_of(["no-such-program-anywhere"]) is None

    def test_chromium_given_by_the_environment(self, monkeypatch, tmp_path) -> None:
        monkeypatch.setenv("TORCHLAB_CHROMIUM", sys.executable)
        assert environment.find_chromium() == sys.executable
        monkeypatch.setenv("TORCHLAB_CHROMIUM", str(tmp_path / "none"))
        assert environment.find_chromium() is None

    def test_has_module(self) -> None:
        assert environment.has_module("json")
        assert not environment.has_module("no_such_module_anywhere")
