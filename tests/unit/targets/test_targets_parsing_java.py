"""What a Java file says about itself."""

from __future__ import annotations

from trialfleet_targets.parsing import parse
from trialfleet_targets.syntax_facts import FileFacts, Import

SOURCE = """\
package com.acme.app;

import com.acme.base.Base;
import static com.acme.util.Checks.notNull;
import com.acme.model.*;
import static com.acme.util.Words.*;

@Stateless
public class Service<T> extends base.Base<T> implements Runs, Closes<T> {
    private static final int LIMIT = 1;
    private Helper helper = new Helper();

    public Service() {}

    public void run(Order order) throws Failure {
        order.ship();
        Dates.parse("x");
        check(notNull(order));
        list.forEach(Printer::print);
    }

    private enum State { ON }
}

interface Runs extends Base {
    int MAX = 3;
    void run();
}
"""


def facts(source: str = SOURCE) -> FileFacts:
    found = parse("src/main/java/com/acme/app/Service.java", source.encode())
    assert found is not None
    return found


def test_definitions() -> None:
    found = facts()
    assert (found.package, found.problem) == ("com.acme.app", "")
    assert [(d.name, d.kind.value, d.line, d.owner, d.exported) for d in found.definitions] == [
        ("Service", "class", 8, "", True),
        ("LIMIT", "constant", 10, "Service", False),
        ("Service", "method", 13, "Service", True),
        ("run", "method", 15, "Service", True),
        ("State", "class", 22, "Service", False),
        ("Runs", "interface", 25, "", True),
        ("MAX", "constant", 26, "Runs", True),
        ("run", "method", 27, "Runs", True),
    ]


def test_imports() -> None:
    assert facts().imports == (
        Import("com.acme.base.Base", (("Base", "Base"),)),
        Import("com.acme.util.Checks", (("notNull", "notNull"),)),
        Import("com.acme.model", (("*", ""),)),
        Import("com.acme.util.Words", (("*", ""),)),
    )


def test_calls_parents_and_references() -> None:
    found = facts()
    assert [(c.name, c.receiver) for c in found.calls] == [
        ("Helper", ""),
        ("ship", "order"),
        ("parse", "Dates"),
        ("check", ""),
        ("notNull", ""),
        ("forEach", "list"),
        ("print", "Printer"),
    ]
    assert [(i.child, i.parent) for i in found.inheritance] == [
        ("Service", "base.Base"),
        ("Service", "Runs"),
        ("Service", "Closes"),
        ("Runs", "Base"),
    ]
    assert {"Helper", "Order", "Failure", "Dates", "Printer", "Stateless"} <= set(found.references)
