"""A restore gives the home of the backup, or refuses and names the file."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from artifacts.folder import Folder
from artifacts.hashing import hash_file
from artifacts.integrity import CorruptArtifact
from artifacts.objects import Objects
from resources.backup import index, restore
from resources.home import FORMAT_FILE, RESTORING, Home, NotReady
from resources.lease import LeaseHeld, release, take
from resources.registry.ledger import Ledger
from resources.registry.ledger_database import LedgerUnreachable
from resources.settings import Settings
from tests.finished_home import RUN, WEIGHTS
from tests.resources.backup.made import backed_up, contents, decided_home, restored


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, Path]:
    """Return a home, and the folder of its backup."""
    tmp_path = tmp_path_factory.mktemp("original")
    settings = decided_home(tmp_path / "a home")
    backed_up(settings, str(tmp_path / "backups"))
    return settings, tmp_path / "backups"


@pytest.mark.parametrize("seed", range(5))
def test_a_flipped_byte_is_refused_by_name(
    original: tuple[Settings, Path], tmp_path: Path, seed: int
) -> None:
    backups = shutil.copytree(original[1], tmp_path / "backups")
    chance, made = random.Random(seed), index.read(Folder(str(backups)))
    name, stored = chance.choice([item for item in sorted(made.files.items()) if item[1].size])
    [path] = backups.rglob(stored.content)
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    names = "|".join(other for other, each in made.files.items() if each.content == stored.content)
    for tried in (
        lambda: restored(str(backups), tmp_path / "new"),
        lambda: restore.check(Folder(str(backups))),
    ):
        with pytest.raises(CorruptArtifact, match=f"^({names}) .* was changed"):
            tried()
    assert (tmp_path / "new" / FORMAT_FILE).read_text().strip() == RESTORING, name


def test_a_changed_index_is_refused(original: tuple[Settings, Path], tmp_path: Path) -> None:
    backups = shutil.copytree(original[1], tmp_path / "backups")
    [path] = (backups / index.FOLDER).iterdir()
    path.write_text(path.read_text().replace(RUN, "chain-0009"))
    with pytest.raises(CorruptArtifact, match=r"backups/.*\.json: was changed"):
        restored(str(backups), tmp_path / "new")


def test_a_folder_that_is_not_empty_is_refused(
    original: tuple[Settings, Path], tmp_path: Path
) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine.txt").write_text("mine")
    with pytest.raises(NotReady, match="new is not empty"):
        restored(str(original[1]), tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine.txt"]


def test_an_interrupted_restore_is_no_home_and_resumes(
    original: tuple[Settings, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, count = Objects.local, iter(range(1000))

    def interrupted(self: Objects, *arguments: object) -> object:
        if next(count) == 20:
            raise KeyboardInterrupt
        return local(self, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "local", interrupted)
        with pytest.raises(KeyboardInterrupt):
            restored(str(original[1]), tmp_path / "new")
    monkeypatch.setenv("RATCHET_HOME", str(tmp_path / "new"))
    with pytest.raises(NotReady, match="not restored completely"):
        Settings.read()
    restored(str(original[1]), tmp_path / "new")
    restored(str(original[1]), tmp_path / "at once")
    assert contents(tmp_path / "new") == contents(tmp_path / "at once")
    Settings.read()


def test_an_earlier_backup_can_be_restored(tmp_path: Path) -> None:
    settings, url = decided_home(tmp_path / "home"), str(tmp_path / "backups")
    notes = settings.home.path / "notes.txt"
    notes.write_text("first")
    first = backed_up(settings, url).index
    notes.write_text("second")
    backed_up(settings, url)
    restored(url, tmp_path / "new", id=first.id)
    assert (tmp_path / "new" / "notes.txt").read_text() == "first"
    with pytest.raises(NotReady, match=f"no backup 2020: use one of {first.id}"):
        restored(url, tmp_path / "other", id="2020")


@pytest.mark.parametrize("as_path", [True, False])
def test_a_damaged_file_is_put_back(
    original: tuple[Settings, Path], tmp_path: Path, as_path: bool
) -> None:
    home = Home(shutil.copytree(original[0].home.path, tmp_path / "home"))
    [path] = home.path.glob(f"checkpoints/{RUN}/*/{WEIGHTS}")
    path.write_text("damaged")
    name = str(path) if as_path else path.relative_to(home.path).as_posix()
    restore.restore_files(Folder(str(original[1])), home, [name])
    [whole] = original[0].home.path.glob(f"checkpoints/{RUN}/*/{WEIGHTS}")
    assert hash_file(path) == hash_file(whole)


def test_a_damaged_ledger_is_put_back(original: tuple[Settings, Path], tmp_path: Path) -> None:
    home = Home(shutil.copytree(original[0].home.path, tmp_path / "home"))
    (home.path / "promotions.db").write_bytes(b"no database")
    restore.restore_files(Folder(str(original[1])), home, ["promotions.db"])
    assert Settings(home, "small").ledger.head() == original[0].ledger.head()


def test_an_older_ledger_does_not_replace_one_with_later_decisions(
    original: tuple[Settings, Path], tmp_path: Path
) -> None:
    home = Home(shutil.copytree(original[0].home.path, tmp_path / "home"))
    champion = Ledger(home.ledger).champion()
    assert champion
    Ledger(home.ledger).append(
        "refuse",
        checkpoint="chain-0002",
        checkpoint_hash="b" * 64,
        path=champion.path,
        decision={},
        run_id="chain-0002",
        against=champion.checkpoint_hash,
    )
    with pytest.raises(NotReady, match=r"promotions\.db is whole.* chain-0002; .*move the file"):
        restore.restore_files(Folder(str(original[1])), home, ["promotions.db"])
    assert Ledger(home.ledger).history()[-1].run_id == "chain-0002"


def test_damaged_records_are_put_back(original: tuple[Settings, Path], tmp_path: Path) -> None:
    home = Home(shutil.copytree(original[0].home.path, tmp_path / "home"))
    (home.path / "records.db").write_bytes(b"no database" * 100)
    with pytest.raises(LedgerUnreachable, match="not a database"):
        restore.restore_files(Folder(str(original[1])), home, ["promotions.db"])
    restore.restore_files(Folder(str(original[1])), home, ["records.db"])
    assert home.runs.texts() == original[0].home.runs.texts()


def test_a_folder_is_put_back(original: tuple[Settings, Path], tmp_path: Path) -> None:
    home = Home(shutil.copytree(original[0].home.path, tmp_path / "home"))
    shutil.rmtree(home.runs / RUN)
    restore.restore_files(Folder(str(original[1])), home, [f"runs/{RUN}/"])
    assert contents(home.path) == contents(original[0].home.path)


def test_an_unknown_file_is_named_with_the_nearest(
    original: tuple[Settings, Path], tmp_path: Path
) -> None:
    with pytest.raises(NotReady, match=r"has no promotion\.db: did you mean promotions\.db"):
        restore.restore_files(Folder(str(original[1])), Home(tmp_path), ["promotion.db"])


def test_no_file_is_put_back_beside_a_training(
    original: tuple[Settings, Path], tmp_path: Path
) -> None:
    home = Home(tmp_path)
    take(home.lease, "chain-0002")
    try:
        with pytest.raises(LeaseHeld):
            restore.restore_files(Folder(str(original[1])), home, ["promotions.db"])
    finally:
        release(home.lease)


def test_a_place_without_a_backup_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="holds no complete backup"):
        restored(str(tmp_path / "nothing"), tmp_path / "new")
