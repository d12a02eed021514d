"""Built contexts that no campaign names: which ones go, and none that a plan names, whenever it comes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.forgetful_store import ForgetfulStore
from tests.support.plans import make_plan
from trialfleet_controller.authoring.context_cache import Author, ContextCache, ContextManifest, manifest_key
from trialfleet_controller.authoring.unused import Unused, remove, unused
from trialfleet_controller.commands.gc import gc
from trialfleet_controller.local_planning import contexts_in_place
from trialfleet_ledger.canonical import sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.ledger import Ledger
from trialfleet_ledger.objects import Objects, object_key
from trialfleet_ledger.plan import Plan
from trialfleet_ledger.store.directory import DirectoryStore
from trialfleet_repository.trees import Tree, TreeEntry, pack, tree_digest

OLD, YOUNG, BEFORE = 1_000.0, 9_000.0, 5_000.0


class Bench:
    """A store with contexts of known ages."""

    def __init__(self, root: Path) -> None:
        self.root = root / "store"
        self.root.mkdir()
        self.store = DirectoryStore(self.root)
        self.objects = Objects(root / "objects", self.store)

    def context(self, text: str, *, at: float, stripped: str | None = None) -> ContextManifest:
        tree: Tree = {"CLAUDE.md": TreeEntry(text.encode())}
        manifest = ContextManifest(
            request=sha256(f"request {text} {at}".encode()),
            task="fix",
            kind="flat",
            tree=tree_digest(tree),
            workspace="1" * 64,
            author=Author(kind="command", version="1", digest="2" * 64),
            prompt=self.objects.put(b"write a context"),
            stripped=None if stripped is None else self.objects.put(stripped.encode()),
            tokenizer="words",
            made_by="1",
        )
        ContextCache(self.objects).keep(manifest, tree)
        os.utime(self.root / manifest_key(manifest.request), (at, at))
        return manifest

    def plan(self, name: str, *, names: ContextManifest) -> Plan:
        plan = make_plan().model_copy(update={"campaign": name})
        cell = plan.cells[0]
        condition = cell.condition.model_copy(update={"context": names.tree})
        return plan.model_copy(
            update={"cells": (cell.model_copy(update={"condition": condition}), *plan.cells[1:])}
        )

    def campaign(self, name: str, *, names: ContextManifest) -> None:
        Ledger(self.store, name).freeze(self.plan(name, names=names))

    def has(self, digest: str | None) -> bool:
        return digest is not None and self.store.get(object_key(digest)) is not None

    def keys(self) -> set[str]:
        return {entry.key for entry in self.store.list("")}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_what_a_plan_names_and_what_is_young_stays(bench: Bench) -> None:
    named, young, old = bench.context("a", at=OLD), bench.context("b", at=YOUNG), bench.context("c", at=OLD)
    bench.campaign("one", names=named)
    assert [one.manifest for one in unused(bench.store, before=BEFORE)] == [old]
    before = bench.keys()
    (found,) = unused(bench.store, before=BEFORE)
    assert remove(bench.store, [found]) == 1  # its tree: the prompt is that of all three
    assert before - bench.keys() == {manifest_key(old.request), object_key(old.tree)}
    assert bench.has(young.prompt)
    assert ContextCache(bench.objects).known("fix", "flat", named.request) is not None


def test_with_the_last_of_a_prompt_its_prompt_goes_and_an_input_never(bench: Bench) -> None:
    old = bench.context("a", at=OLD, stripped="- make test")
    kept = bench.objects.put(b"the tree of some task")
    assert remove(bench.store, unused(bench.store, before=BEFORE)) == 3
    assert bench.keys() == {object_key(kept)}
    assert not any(map(bench.has, (old.tree, old.prompt, old.stripped)))
    assert unused(bench.store, before=BEFORE) == []


def test_a_tree_that_another_context_is_too_stays_with_it(bench: Bench) -> None:
    bench.context("same", at=OLD)
    young = bench.context("same", at=YOUNG)
    assert remove(bench.store, unused(bench.store, before=BEFORE)) == 0
    assert ContextCache(bench.objects).known("fix", "flat", young.request) is not None


def test_what_is_no_manifest_is_left(bench: Bench) -> None:
    for name in ("x.json", "notes.txt", f"{'a' * 64}.json"):
        bench.store.create(f"_contexts/{name}", b"{}")
        os.utime(bench.root / "_contexts" / name, (OLD, OLD))
    forged = bench.context("a", at=OLD)
    other = manifest_key("b" * 64)
    bench.store.create(other, forged.model_dump_json().encode())  # says it were another request's
    os.utime(bench.root / other, (OLD, OLD))
    assert [one.manifest.request for one in unused(bench.store, before=BEFORE)] == [forged.request]


@pytest.mark.parametrize("ending", ["campaign.json", ".json"])
def test_one_wrong_answer_makes_no_context_unused(bench: Bench, ending: str) -> None:
    named, young, old = bench.context("a", at=OLD), bench.context("b", at=YOUNG), bench.context("b", at=OLD)
    bench.campaign("one", names=named)
    assert [one.manifest for one in unused(ForgetfulStore(bench.root, ending), before=BEFORE)] == [old]
    assert remove(ForgetfulStore(bench.root, ending), unused(bench.store, before=BEFORE)) == 0
    assert all(map(bench.has, (named.tree, young.tree, young.prompt)))


@pytest.mark.parametrize("text", [b"<html>", b"[]", b""])
def test_a_plan_that_cannot_be_read_stops_the_removal(bench: Bench, text: bytes) -> None:
    bench.context("a", at=OLD)
    found = unused(bench.store, before=BEFORE)
    bench.store.create("one/campaign.json", text)
    before = bench.keys()
    for refused in (lambda: unused(bench.store, before=BEFORE), lambda: remove(bench.store, found)):
        with pytest.raises(OperatorError, match=r"one/campaign.json: not a plan.*nothing is deleted"):
            refused()
    assert before - bench.keys() <= {manifest_key(found[0].manifest.request)}


class Meanwhile(DirectoryStore):
    """A plan is frozen while the first object is being deleted."""

    def delete(self, key: str) -> None:
        super().delete(key)
        plan = PLANS.pop() if PLANS and key.startswith("objects/") else None
        if plan is not None:
            Ledger(DirectoryStore(self.root), plan.campaign).freeze(plan)


PLANS: list[Plan] = []


def test_a_plan_that_comes_meanwhile_keeps_its_context(bench: Bench) -> None:
    old = bench.context("a", at=OLD)
    PLANS[:] = [bench.plan("late", names=old)]
    found = unused(bench.store, before=BEFORE)
    remove(Meanwhile(bench.root), found)
    assert not PLANS
    assert Objects(bench.root.parent / "elsewhere", bench.store).get(old.tree)


def test_a_plan_that_was_made_before_and_is_frozen_after_brings_its_context_back(bench: Bench) -> None:
    old = bench.context("a", at=OLD)
    plan = bench.plan("late", names=old)  # made: its objects were found in the store
    assert remove(bench.store, unused(bench.store, before=BEFORE)) == 2
    Ledger(bench.store, "late").freeze(plan)
    assert not bench.has(old.tree)
    contexts_in_place(plan, Objects(bench.objects.folder, bench.store))
    assert pack({"CLAUDE.md": TreeEntry(b"a")}) == Objects(bench.root.parent / "elsewhere", bench.store).get(
        old.tree
    )


def said(*args: str) -> str:
    ran = CliRunner().invoke(gc, args)
    assert ran.exit_code == 0, f"{ran.output}{ran.exception!r}"
    return ran.output


def test_the_command_lists_and_removes_with_yes_alone(bench: Bench) -> None:
    old = bench.context("a", at=OLD)
    bench.context("b", at=2e10)
    before, args = bench.keys(), ("--store", str(bench.root), "--contexts")
    listed = said(*args)
    assert re.search(r"^would remove fix flat: .* by command 1, written \d+ days ago$", listed, re.M), listed
    assert "nothing was removed: pass --yes" in listed
    assert bench.keys() == before
    assert "nothing to remove" in said(*args, "--older-than", "1e6", "--yes")
    assert "1 context and 1 object removed" in said(*args, "--yes")
    assert before - bench.keys() == {manifest_key(old.request), object_key(old.tree)}
    assert "nothing to remove" in said(*args, "--yes")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--contexts",), "needs --store alone"),
        (("demo", "--store", "x", "--contexts"), "needs --store alone"),
        (("--store", "x", "--contexts", "--older-than", "0.5"), "younger than one day"),
    ],
)
def test_what_the_command_refuses(args: tuple[str, ...], why: str) -> None:
    ran = CliRunner().invoke(gc, args)
    assert isinstance(ran.exception, OperatorError)
    assert why in str(ran.exception)


def test_removing_can_be_repeated(bench: Bench) -> None:
    bench.context("a", at=OLD)
    found: list[Unused] = unused(bench.store, before=BEFORE)
    assert (remove(bench.store, found), remove(bench.store, found)) == (2, 0)
