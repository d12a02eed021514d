"""A validated task becomes an order: every input an object, every fact in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from trialfleet_deliveries.anchor import anchor_for
from trialfleet_deliveries.nodes import covering_node
from trialfleet_ledger.canonical import digest, sha256
from trialfleet_ledger.errors import OperatorError
from trialfleet_ledger.objects import Objects
from trialfleet_ledger.plan import PlannedTask
from trialfleet_ledger.records.task_order import Prediction, TaskOrder
from trialfleet_ledger.task import Status
from trialfleet_repository.cache import Cache
from trialfleet_repository.patch import between
from trialfleet_repository.trees import pack
from trialfleet_repository.workspace import build_template, template_of
from trialfleet_sandbox.protocol import Sandbox
from trialfleet_tasks import prompts
from trialfleet_tasks.contexts import readable_context
from trialfleet_tasks.taskfile import LoadedTask
from trialfleet_tasks.validate.inputs import Prepared, prepare_inputs
from trialfleet_tasks.validate.record import Validation
from trialfleet_tasks.variants import Variants

Predict = Callable[[str, Variants], Prediction]  # of the task's text, for the tree that the agent gets


def prepare_task(
    task: LoadedTask,
    validation: Validation,
    *,
    cache: Cache,
    objects: Objects,
    mirrors: Mapping[str, Path],
    sandbox: Sandbox,
    predict: Predict | None = None,
    prepared: Prepared | None = None,
) -> PlannedTask:
    """The task as the plan freezes it. Its trees, fix, prompt and lock are put among the objects.
    `predict` is asked once, when it is given. `prepared`: what `prepare_inputs` gave for the task.

    Raises `OperatorError` when the validation does not hold, or is of other content than the task has now.
    """
    _check_holds(task, validation)
    prepared = prepared or prepare_inputs(task, cache=cache, mirrors=mirrors, sandbox=sandbox)
    _check_unchanged(task, prepared, validation)
    prepared = prepared.with_test_side(validation.test_side)
    variants = prepared.variants
    template = build_template(template_of(sha256(prepared.pristine), None, cache=cache), variants.pristine)
    output = _frozen_output(validation, objects)
    prompt = _prompt(task, prepared, output)
    environment = prepared.environment
    objects.put(environment.source)
    prediction = None if predict is None else predict(prompt, variants)
    anchor = _anchor(task, prepared, output, prediction)
    order = TaskOrder(
        id=task.id,
        digest="0" * 64,
        environment=environment.ref,
        workspace=objects.put(pack(variants.workspace)),
        pristine=objects.put(prepared.pristine),
        fix=objects.put(between(template, variants.fix).encode()),
        test_command=environment.test_command,
        results=environment.results,
        directory=environment.directory,
        pythonpath=environment.pythonpath,
        env=dict(environment.env),
        fail_to_pass=validation.fail_to_pass,
        pass_to_pass=validation.pass_to_pass,
        test_files=variants.test_files,
        travelling_tests=variants.travelling_tests,
        classes=_stored(validation.classes, objects),
        must_fail=_stored(validation.must_fail, objects),
        fix_bytes=validation.fix_bytes,
        import_name=environment.import_name,
        prompt_source=task.spec.prompt_source,
        prompt=objects.put(prompt.encode()),
        anchor=anchor,
        language=task.repo.language,
        test_framework=task.repo.test_framework or environment.test_framework,
        targets=variants.targets,
    )
    apart = _apart(task, validation)
    return PlannedTask(
        order=order.model_copy(update={"digest": digest(order)}),
        primary=apart is None,
        apart=apart,
        file=str(task.file),
        covered=_covered(task, anchor, objects),
        prediction=prediction,
        category=task.spec.category,
        difficulty=task.spec.difficulty,
        committed=prepared.committed,
        repository=task.repository,
    )


def _anchor(task: LoadedTask, prepared: Prepared, output: str | None, prediction: Prediction | None) -> str | None:
    predicted = prediction.targets if prediction is not None else ()
    return anchor_for(
        task.spec.anchor,
        prompt_source=task.spec.prompt_source,
        paths=prepared.variants.workspace,
        failure_output=output,
        test_file=task.spec.test_file,
        targets=prepared.variants.targets,
        predicted=predicted[0].path if predicted else None,
        directory=prepared.environment.directory,
    )


def _check_unchanged(task: LoadedTask, prepared: Prepared, validation: Validation) -> None:
    if prepared.digest != validation.digest:
        raise OperatorError(
            "the task has changed since it was validated",
            where=task.where,
            hint="run `trialfleet validate` again",
        )


def _apart(task: LoadedTask, validation: Validation) -> str | None:
    """Why the task's results are no primary ones."""
    if validation.status is not Status.VALIDATED:
        return "no fail-to-pass test exists"
    if task.spec.anchor == "oracle":
        return "anchor: oracle looks for context at the file that the fix changes"
    return None


def _stored(digest: str | None, objects: Objects) -> str | None:
    """An object of a validation, which from now on the store has, too."""
    if digest is not None:
        objects.upload([digest])
    return digest


def _frozen_output(validation: Validation, objects: Objects) -> str | None:
    """The failing test's output."""
    output = _stored(validation.output, objects)
    return None if output is None else objects.get(output).decode()


def _check_holds(task: LoadedTask, validation: Validation) -> None:
    if not validation.holds:
        first = validation.problems[0]
        raise OperatorError(
            f"the task is not valid: {first.message}", where=task.where, hint=first.hint or "correct the task"
        )
    if validation.task != task.id:
        raise OperatorError(
            f"this is the validation of {validation.task!r}", where=task.where, hint="validate this task"
        )


def _prompt(task: LoadedTask, prepared: Prepared, output: str | None) -> str:
    match task.spec.prompt_source:
        case "failing_test":
            assert output is not None, "a failing_test task that holds has its output"
            return prompts.failing_test(output)
        case "issue":
            assert task.spec.issue is not None, "the task file's schema requires it"
            return prompts.issue(task.spec.issue)
        case "commit_message":
            if not (prepared.commit_message or "").strip():
                raise OperatorError(
                    "the task has no commit message",
                    where=f"{task.where}: commit_message",
                    hint="write it into the task",
                )
            return prompts.commit_message(prepared.commit_message or "")


def _covered(task: LoadedTask, anchor: str | None, objects: Objects) -> bool | None:
    """Whether a node of the task's `tree` covers the anchor; None when it has no such context that can be read."""
    tree = readable_context(task, "tree", objects=objects)
    return None if isinstance(tree, OperatorError) else covering_node(set(tree), anchor) is not None
