"""The commit of a checkout is what git says of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gradcli.train import git_folder

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(params=["sha1", "sha256"])
def checkout(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / ("long" * 20)).write_text("content\n")
    (root / "empty").touch()
    (root / "link").symlink_to("empty")
    git(tmp_path, "init", "-q", f"--object-format={request.param}", str(root))
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return root


@needs_git
def test_the_commit_is_that_of_git(checkout: Path) -> None:
    assert git_folder.commit(checkout) == git(checkout, "rev-parse", "HEAD")
    assert git_folder.head(checkout / "deep") == git(checkout, "rev-parse", "HEAD")
    git(checkout, "pack-refs", "--all")
    git(checkout, "checkout", "-q", "-b", "topic/of")
    assert git_folder.commit(checkout) == git(checkout, "rev-parse", "HEAD")
    git(checkout, "checkout", "-q", "--detach")
    assert git_folder.commit(checkout) == git(checkout, "rev-parse", "HEAD")


@needs_git
def test_a_changed_or_missing_file_is_noticed(checkout: Path) -> None:
    clean = git(checkout, "rev-parse", "HEAD")
    file = checkout / "deep" / ("long" * 20)
    file.write_text("CONTENT\n")  # as long as before, and perhaps as old
    assert git_folder.commit(checkout) == f"{clean}-dirty"
    file.write_text("content\n")  # only its time is another
    assert git_folder.commit(checkout) == clean
    (checkout / "empty").unlink()
    assert git_folder.commit(checkout) == f"{clean}-dirty"


@needs_git
def test_a_further_worktree_and_a_file_meant_to_be_added(checkout: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(checkout, "worktree", "add", "-q", "-b", "other", str(other))
    git(other, "commit", "-qm", "two", "--allow-empty")
    assert git_folder.head(other) == git(other, "rev-parse", "HEAD")
    assert git_folder.commit(other) == git(other, "rev-parse", "HEAD")
    (other / "new").write_text("1")
    git(other, "add", "--intent-to-add", "new")  # an index of version 3
    assert git_folder.commit(other) == f"{git(other, 'rev-parse', 'HEAD')}-dirty"


@needs_git
def test_what_cannot_be_read_is_not_known(checkout: Path, tmp_path: Path) -> None:
    assert git_folder.commit(tmp_path) is None
    index = checkout / ".git" / "index"
    for length in range(0, len(whole := index.read_bytes()), 7):
        index.write_bytes(whole[:length])
        assert git_folder.commit(checkout) in (None, *expected(checkout))
    index.write_bytes(whole)
    (checkout / ".git" / "HEAD").write_text("ref: refs/heads/none\n")
    assert git_folder.commit(checkout) is None
    assert git_folder.head(checkout) is None
    (checkout / ".git" / "HEAD").write_bytes(b"\xff\x00")
    assert git_folder.head(checkout) is None


def expected(checkout: Path) -> tuple[str, str]:
    """What may be said of a cut index: it still has a head."""
    name = git(checkout, "rev-parse", "HEAD")
    return name, f"{name}-dirty"


def test_a_folder_that_is_gone_or_closed_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert git_folder.head(Path()) is None

    def closed(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", closed)  # as until Python 3.13 in a folder without rights
    assert git_folder.head(tmp_path) is None
