"""Files that mostly pass on what others define."""

from __future__ import annotations

from trialfleet_targets.facts import DefinitionKind, FileFacts


def is_barrel(facts: FileFacts) -> bool:
    """Whether more than half of the names that the file offers are defined elsewhere: `export … from`, `pub use`,
    `pub mod x;`, or imports of the package itself in an `__init__.py`. `export *` counts as one name."""
    passed_on = sum(max(len(i.names), 1) for i in facts.imports if i.re_export)
    modules = {
        i.module.rpartition("::")[2] for i in facts.imports if i.module.startswith("self::") and not i.names
    }
    passed_on += sum(
        d.exported and d.name in modules for d in facts.definitions if d.kind is DefinitionKind.MODULE
    )
    own = sum(not d.owner and d.kind is not DefinitionKind.MODULE for d in facts.definitions)
    return passed_on > own
