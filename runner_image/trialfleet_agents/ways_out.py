"""What to use in the place of a setting that no campaign may choose."""

from __future__ import annotations

FIXED = "leave it out: it belongs to the isolation or the budget of every attempt"
MODEL = "use model: of the agent or of the condition"
EFFORT = "use effort: of the condition, or options.effort"
HOOKS = "use hook: on_read, fail_fast: true or channel: rules of the condition"
MCP = "use mcp: of the condition"
SKILLS = "use skills: of the condition"
TEXT = "use files: or inline: of the condition"
PRICE = "leave it out: requests would have other prices than those that costs are counted by"
