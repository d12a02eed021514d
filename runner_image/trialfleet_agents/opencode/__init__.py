"""OpenCode."""

from trialfleet_agents.agent_kind import AgentFiles, AgentKind, SettingsRules
from trialfleet_agents.skill_faults import SkillFault
from trialfleet_agents.tool_calls import ToolCalls, call_reader, call_shell
from trialfleet_agents.ways_out import EFFORT, FIXED, MCP, MODEL, SKILLS, TEXT
from trialfleet_deliveries.skills import SHARED_FOLDER

_RESERVED = {
    MODEL: "model small_model agent.*.model mode.*.model command.*.model provider.*.models.*.id",
    EFFORT: "agent.*.variant mode.*.variant",
    MCP: "mcp experimental.mcp_timeout",
    SKILLS: "skills",
    TEXT: "instructions reference references",
    FIXED: "autoupdate share autoshare snapshot enabled_providers disabled_providers permission "
    "agent.*.permission agent.*.steps agent.*.maxSteps mode.*.permission tools.webfetch tools.websearch "
    "agent.*.tools.web* mode.*.tools.web* mode.*.steps mode.*.maxSteps default_agent shell plugin server "
    "enterprise experimental.openTelemetry experimental.hook experimental.policies provider.*.options "
    "provider.*.api provider.*.npm provider.*.env provider.*.models.*.provider provider.*.models.*.headers "
    "providers agents plugins permissions lsp formatter",
}
OPENCODE = AgentKind(
    kind="opencode",
    adapter="trialfleet_agents.opencode.agent:OpenCode",
    files=AgentFiles(
        roots=("AGENTS.md", "CLAUDE.md"),
        skills=SHARED_FOLDER,
        names=(".agents", ".claude", ".opencode", "opencode.json", "opencode.jsonc"),
        home=(".config/opencode/AGENTS.md",),
        left_out=(
            *("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
            *(".opencode/plugin/*", ".opencode/plugins/*", ".opencode/tool/*", ".opencode/tools/*"),
            ".opencode/package.json",
        ),
        refused_skills=(
            SkillFault.NO_FRONT_MATTER,
            SkillFault.UNQUOTED,
            SkillFault.INVALID,
            SkillFault.DUPLICATE,
            SkillFault.NO_NAME,
            SkillFault.NO_DESCRIPTION,
            SkillFault.NOT_TEXT,
        ),
    ),
    rules=SettingsRules(
        reserved=_RESERVED,
    ),
    tool_calls=ToolCalls(model="claude-sonnet-4-6", read=call_reader("read", "filePath"), run=call_shell("bash")),
)
